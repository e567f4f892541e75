"""The algorithms: their parameters become flags of the geodiv command, its files become styled layers."""

from __future__ import annotations

import os

from processing.core.ProcessingConfig import ProcessingConfig
from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingException,
    QgsProcessingLayerPostProcessorInterface,
    QgsProcessingOutputNumber,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterCrs,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFeatureSource,
    QgsProcessingParameterField,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterNumber,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
    QgsProcessingParameterVectorLayer,
)

from . import command

GRIDS = ("As the policy file says", "H3 cells", "Squares", "My polygons", "Column of cell ids")
REFERENCES = ("As the policy file says, else global", "The whole area", "The cells around")
BAD_ROWS = ("As the policy file says, else error", "error", "skip")
READABLE = ["gpkg", "shp", "geojson", "fgb", "csv"]

_DOUBLE, _WHOLE = QgsProcessingParameterNumber.Double, QgsProcessingParameterNumber.Integer
_GATES = (
    # name, flag, title, whole number, smallest, largest
    ("K", "--k", "k: fewest persons in a zone", True, 1, None),
    ("L", "--l", "l: smallest effective number of values", False, 1, None),
    ("T", "--t", "t: largest distance to the reference (0 to 1)", False, 0, 1),
    ("SHIFT", "--shift", "Largest rise or fall of the belief in one value (0 to 1)", False, 0, 1),
    ("INCIDENCE", "--incidence", "Largest share of persons under one label (0 to 1)", False, 0, 1),
)
_INTRODUCTION = (
    "<p>Give a policy file (<code>geodiv init</code> writes one), or say here which columns hold the person and the "
    "sensitive attributes, which cells to use and which gates to apply. What is said here wins over the file.</p>"
)


class GeodivAlgorithm(QgsProcessingAlgorithm):
    """What score, enforce and sweep share: visits, grid, attributes, gates, and the run of the command."""

    verb = ""
    allowed = (0,)

    def createInstance(self):
        return type(self)()

    def name(self):
        return self.verb

    def initAlgorithm(self, configuration=None):
        self._add_visits()
        self._add_grid()
        self._add_gates()

    def _add_visits(self):
        self._add(QgsProcessingParameterFeatureSource("INPUT", "Visits", [QgsProcessing.TypeVector]))
        policy = QgsProcessingParameterFile("POLICY", "Policy file", extension="toml", optional=True)
        self._add(policy)
        self._field("PERSON", "Person")
        self._field("ATTRIBUTES", "Sensitive attributes", allowMultiple=True)
        self._add(
            QgsProcessingParameterFile(
                "TAXONOMY", "Taxonomy of the attribute", extension="csv", optional=True
            )
        )
        self._field("LON", "Longitude (for a table without points)", advanced=True)
        self._field("LAT", "Latitude (for a table without points)", advanced=True)
        crs = QgsProcessingParameterCrs(
            "CRS", "CRS of these coordinates, or of a layer without one", optional=True
        )
        self._add(crs, advanced=True)
        bad = QgsProcessingParameterEnum(
            "BAD_ROWS", "Rows that cannot be counted", list(BAD_ROWS), defaultValue=0
        )
        self._add(bad, advanced=True)

    def _add_grid(self):
        self._add(QgsProcessingParameterEnum("GRID", "Cells", list(GRIDS), defaultValue=0))
        self._number("RESOLUTION", "H3 resolution", True, 0, 15, default=8)
        self._number("SIZE", "Side of the squares in metres", False, 1, None, default=500)
        self._add(
            QgsProcessingParameterCrs("SQUARE_CRS", "Metric CRS of the squares", "EPSG:3035", optional=True)
        )
        polygons = [QgsProcessing.TypeVectorPolygon]
        self._add(QgsProcessingParameterVectorLayer("ZONES", "My polygons", polygons, optional=True))
        self._field("ZONES_ID", "Id of my polygons", parent="ZONES")
        self._field("CELL_COLUMN", "Column of cell ids")

    def _add_gates(self):
        for name, _, title, whole, low, high in _GATES:
            self._number(name, title, whole, low, high)
        scope = QgsProcessingParameterEnum("REFERENCE", "Compare with", list(REFERENCES), defaultValue=0)
        self._add(scope)
        self._number("RING", "Steps around", True, 1, None, default=1, advanced=True)
        self._number("MAX_RING", "Steps around, widened to at most", True, 1, None, advanced=True)
        self._number("MIN_PERSONS", "Persons that the cells around must hold", True, 1, None, advanced=True)

    def _add(self, parameter, *, advanced=False):
        if advanced:
            parameter.setFlags(parameter.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
        self.addParameter(parameter)

    def _field(self, name, title, *, parent="INPUT", allowMultiple=False, advanced=False):
        field = QgsProcessingParameterField(
            name, title, parentLayerParameterName=parent, allowMultiple=allowMultiple, optional=True
        )
        self._add(field, advanced=advanced)

    def _number(self, name, title, whole, low, high, *, default=None, advanced=False):
        limits = {} if high is None else {"maxValue": high}
        kind = _WHOLE if whole else _DOUBLE
        number = QgsProcessingParameterNumber(name, title, kind, default, True, low, **limits)
        self._add(number, advanced=advanced)

    def checkParameterValues(self, parameters, context):
        """What is missing is said before anything runs."""
        good, said = super().checkParameterValues(parameters, context)
        if not good:
            return good, said
        grid = self.parameterAsEnum(parameters, "GRID", context)
        needed = {3: ("ZONES", "ZONES_ID"), 4: ("CELL_COLUMN",)}.get(grid, ())
        if not self.parameterAsFile(parameters, "POLICY", context):
            needed = ("PERSON", "ATTRIBUTES", *needed)
            if grid == 0:
                return False, "Give a policy file, or choose which cells to use."
        empty = [name for name in needed if not parameters.get(name)]
        if empty:
            titles = ", ".join(f"'{self.parameterDefinition(name).description()}'" for name in empty)
            return False, f"These are needed and empty: {titles}."
        return True, ""

    def _visits(self, parameters, context, feedback):
        source = self.parameterAsSource(parameters, "INPUT", context)
        if source is None:
            raise QgsProcessingException(self.invalidSourceError(parameters, "INPUT"))
        fields = source.fields().names()
        for name in ("PERSON", "ATTRIBUTES", "LON", "LAT", "CELL_COLUMN"):
            for wanted in self.parameterAsFields(parameters, name, context):
                if wanted not in fields:
                    known = ", ".join(fields)
                    raise QgsProcessingException(f"The visits have no column '{wanted}'. They have: {known}.")
        path, layer = self.parameterAsCompatibleSourceLayerPathAndLayerName(
            parameters, "INPUT", context, READABLE, "gpkg", feedback
        )
        return command.layer_source(path, layer)

    def _flags(self, parameters, context):
        flags = []
        for name, flag in (("POLICY", "-p"), ("TAXONOMY", "--taxonomy")):
            if path := self.parameterAsFile(parameters, name, context):
                flags += [flag, path]
        for name, flag in (
            ("PERSON", "--person"),
            ("LON", "--lon"),
            ("LAT", "--lat"),
            ("ATTRIBUTES", "--attribute"),
        ):
            for column in self.parameterAsFields(parameters, name, context):
                flags += [flag, column]
        crs = self.parameterAsCrs(parameters, "CRS", context)
        if crs.isValid():
            flags += ["--crs", crs.authid() or crs.toWkt()]
        if rows := self.parameterAsEnum(parameters, "BAD_ROWS", context):
            flags += ["--on-bad-rows", BAD_ROWS[rows]]
        flags += self._numbers(parameters, context, *((name, flag) for name, flag, *_ in _GATES))
        if self.parameterAsEnum(parameters, "REFERENCE", context) == 2:
            rings = (("RING", "--ring"), ("MAX_RING", "--max-ring"), ("MIN_PERSONS", "--min-persons"))
            flags += self._numbers(parameters, context, *rings)
        return flags + self._grid(parameters, context)

    def _grid(self, parameters, context):
        grid = self.parameterAsEnum(parameters, "GRID", context)
        if grid == 1:
            return self._numbers(parameters, context, ("RESOLUTION", "--h3"))
        if grid == 2:
            crs = self.parameterAsCrs(parameters, "SQUARE_CRS", context)
            return [
                *self._numbers(parameters, context, ("SIZE", "--square")),
                "--square-crs",
                crs.authid() or crs.toWkt(),
            ]
        if grid == 3:
            path, layer = self.parameterAsCompatibleSourceLayerPathAndLayerName(
                parameters, "ZONES", context, READABLE, "gpkg"
            )
            named = f"{path}|layername={layer}" if layer and path.lower().endswith(".gpkg") else path
            return ["--zones", named, "--zones-id", *self.parameterAsFields(parameters, "ZONES_ID", context)]
        if grid == 4:
            return ["--cell-column", *self.parameterAsFields(parameters, "CELL_COLUMN", context)]
        return []

    def _numbers(self, parameters, context, *names):
        flags = []
        for name, flag in names:
            if parameters.get(name) is not None or self.parameterDefinition(name).defaultValue() is not None:
                whole = self.parameterDefinition(name).dataType() == _WHOLE
                read = self.parameterAsInt if whole else self.parameterAsDouble
                flags += [flag, str(read(parameters, name, context))]
        return flags

    def _run(self, arguments, feedback):
        try:
            executable = command.find(ProcessingConfig.getSetting("GEODIV_EXECUTABLE") or "")
            whole = [executable, self.verb, *arguments, "--overwrite", "--json", "--progress", "json"]
            feedback.pushCommandInfo(" ".join(f'"{part}"' if " " in part else part for part in whole))
            return command.run(
                whole,
                progress=lambda stage, percent: self._progress(feedback, stage, percent),
                message=feedback.pushInfo,
                cancelled=feedback.isCanceled,
                allowed=self.allowed,
            )
        except command.CommandError as error:
            raise QgsProcessingException(str(error)) from error

    def _progress(self, feedback, stage, percent):
        feedback.setProgressText(stage)
        if percent is not None:
            feedback.setProgress(percent)

    def _styled(self, path, context):
        """Have the layer that is loaded from this file take the style that is stored in it."""
        if path and context.willLoadLayerOnCompletion(path):
            context.layerToLoadOnCompletionDetails(path).setPostProcessor(StoredStyle.new())


class ScoreAlgorithm(GeodivAlgorithm):
    """``geodiv score``: the internal work file."""

    verb = "score"

    def displayName(self):
        return "Score every cell (internal)"

    def shortDescription(self):
        return "Which cells of a map of visits give away what people did there?"

    def shortHelpString(self):
        return (
            "<p>Counts distinct persons in each cell and says which cells would give away what people did there, by "
            "which gate, and what would help. The result is <b>internal</b>: never publish it.</p>"
            + _INTRODUCTION
        )

    def initAlgorithm(self, configuration=None):
        super().initAlgorithm(configuration)
        polygons = QgsProcessing.TypeVectorPolygon
        self.addParameter(QgsProcessingParameterVectorDestination("OUTPUT", "Work file (internal)", polygons))
        self.addOutput(QgsProcessingOutputNumber("FAILING", "Cells that fail"))

    def processAlgorithm(self, parameters, context, feedback):
        output = self.parameterAsOutputLayer(parameters, "OUTPUT", context)
        arguments = [*self._visits(parameters, context, feedback), *self._flags(parameters, context)]
        try:
            figures = self._run([*arguments, "-o", output], feedback)
        except command.Cancelled:
            return {}
        self._styled(output, context)
        return {"OUTPUT": output, "FAILING": figures.get("failing")}


class EnforceAlgorithm(GeodivAlgorithm):
    """``geodiv enforce``: the release, and the work file when asked for."""

    verb = "enforce"
    allowed = (0, 1)

    def displayName(self):
        return "Repair and release"

    def shortDescription(self):
        return "Coarsen, merge or leave out the cells that give people away, and write what may be published."

    def shortHelpString(self):
        return (
            "<p>Repairs the cells that would give away what people did there: coarser categories, zones joined with "
            "their neighbours, cells left out; counts again until nothing fails, and writes the release, which may be "
            "published, with a .json beside it that says how it was made.</p>" + _INTRODUCTION
        )

    def initAlgorithm(self, configuration=None):
        super().initAlgorithm(configuration)
        self._add(QgsProcessingParameterString("TITLE", "Title of the release", optional=True))
        note = QgsProcessingParameterString(
            "NOTE", "The choice that was made, in words", multiLine=True, optional=True
        )
        self._add(note)
        polygons = QgsProcessing.TypeVectorPolygon
        self.addParameter(QgsProcessingParameterVectorDestination("OUTPUT", "Release", polygons))
        work = QgsProcessingParameterVectorDestination(
            "WORK", "Work file (internal)", polygons, None, True, False
        )
        self.addParameter(work)
        for name in ("ZONES", "PERSONS", "NOT_PUBLISHED", "COVERAGE"):
            self.addOutput(QgsProcessingOutputNumber(f"N_{name}", name.capitalize().replace("_", " ")))

    def processAlgorithm(self, parameters, context, feedback):
        output = self.parameterAsOutputLayer(parameters, "OUTPUT", context)
        work = self.parameterAsOutputLayer(parameters, "WORK", context)
        arguments = [
            *self._visits(parameters, context, feedback),
            *self._flags(parameters, context),
            "-o",
            output,
        ]
        for name, flag in (("TITLE", "--title"), ("NOTE", "--note")):
            if text := self.parameterAsString(parameters, name, context):
                arguments += [flag, text]
        try:
            figures = self._run([*arguments, *(["--work", work] if work else [])], feedback)
        except command.Cancelled:
            return {}
        if not os.path.exists(output):
            raise QgsProcessingException("geodiv wrote no release; its messages say why.")
        if figures.get("zones") == 0:
            feedback.reportError("Nothing could be published under these gates: the release is empty.", False)
        self._styled(output, context)
        self._styled(work, context)
        names = ("zones", "persons", "not_published", "coverage")
        return {"OUTPUT": output, "WORK": work, **{f"N_{name.upper()}": figures.get(name) for name in names}}


class SweepAlgorithm(GeodivAlgorithm):
    """``geodiv sweep``: figures by size of the cells, as a table."""

    verb = "sweep"

    def displayName(self):
        return "Compare sizes of the cells (internal)"

    def shortDescription(self):
        return "How much would pass, and how much could be published, with smaller or larger cells?"

    def shortHelpString(self):
        return (
            "<p>Scores the visits at each size, and repairs them as well when asked for: the table from which to "
            "choose a size. It is <b>internal</b>: never publish it.</p>" + _INTRODUCTION
        )

    def initAlgorithm(self, configuration=None):
        super().initAlgorithm(configuration)
        sizes = "Sizes: H3 resolutions, or sides of squares in metres, separated by commas"
        self._add(QgsProcessingParameterString("SIZES", sizes, "6,7,8,9"))
        self._add(QgsProcessingParameterBoolean("REMEDIES", "Repair at each size too (slower)", True))
        self.addParameter(QgsProcessingParameterFileDestination("OUTPUT", "Table", "CSV (*.csv)"))

    def processAlgorithm(self, parameters, context, feedback):
        output = self.parameterAsFileOutput(parameters, "OUTPUT", context)
        arguments = [*self._visits(parameters, context, feedback), *self._flags(parameters, context)]
        arguments += ["--sizes", self.parameterAsString(parameters, "SIZES", context), "-o", output]
        if not self.parameterAsBool(parameters, "REMEDIES", context):
            arguments.append("--no-remedies")
        try:
            self._run(arguments, feedback)
        except command.Cancelled:
            return {}
        return {"OUTPUT": output}


class StoredStyle(QgsProcessingLayerPostProcessorInterface):
    """Loads the default style that the file holds, over the one that Processing gave the layer."""

    kept: list = []  # noqa: RUF012 - QGIS keeps no reference to a post-processor

    @classmethod
    def new(cls):
        """One more of them, kept alive."""
        cls.kept.append(cls())
        return cls.kept[-1]

    def postProcessLayer(self, layer, context, feedback):
        layer.loadDefaultStyle()
