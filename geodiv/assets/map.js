"use strict";
// Draws the zones of a release. Every text comes from the data block and is set as text, never as HTML.
const start = () => {
  const data = JSON.parse(document.getElementById("geodiv-data").textContent);
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const PLACE = new Map([...ALPHABET].map((c, i) => [c, i]));
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);

  // whole numbers: zigzag, base 32, the sixth bit says that another digit follows
  const unpacked = (text) => {
    const numbers = [];
    let value = 0, unit = 1;
    for (const c of text) {
      const digit = PLACE.get(c);
      value += (digit & 31) * unit;
      unit *= 32;
      if (!(digit & 32)) {
        numbers.push(value % 2 ? -(value + 1) / 2 : value / 2);
        value = 0; unit = 1;
      }
    }
    return numbers;
  };

  const element = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // longitudes near the centre of the map, also across 180 degrees
  const near = (lng) => lng - 360 * Math.round((lng - data.centre) / 360);
  const moved = (ring) => {
    const shift = near(ring[0][1]) - ring[0][1];
    let before = ring[0][1];
    return ring.map(([lat, lng]) => {
      if (data.h3) { lng -= 360 * Math.round((lng - before) / 360); before = lng; }
      return [lat, lng + shift];
    });
  };

  const ofCells = () => {
    const { prefix, suffix, ids, width } = data.h3;
    let at = 0;
    const members = data.sizes.map((n) => Array.from({ length: n }, () => prefix + ids.substr(width * at++, width) + suffix));
    return {
      ids: members.map((m) => m[0]),
      rings: members.map((m) => (m.length === 1 ? [[moved(h3.cellToBoundary(m[0]))]]
        : h3.cellsToMultiPolygon(m).map((polygon) => polygon.map(moved)))),
    };
  };

  const ofOutlines = () => {
    const steps = unpacked(data.outlines.xy), scale = 10 ** data.outlines.digits;
    const rings = unpacked(data.outlines.rings), polygons = unpacked(data.outlines.polygons);
    let at = 0, x = 0, y = 0, r = 0, p = 0;
    const ring = (n) => moved(Array.from({ length: n }, () => {
      x += steps[at++]; y += steps[at++];
      return [y / scale, x / scale];
    }));
    // each id: how many characters it shares with the one before, and the rest of it; in characters, not UTF-16 units
    let before = [];
    const whole = (line) => {
      const [same, ...rest] = line;
      before = [...before.slice(0, PLACE.get(same)), ...rest];
      return before.join("");
    };
    return {
      ids: data.ids ? data.ids.split("\n").map(whole) : [],
      rings: unpacked(data.outlines.zones).map((n) => Array.from({ length: n }, () =>
        Array.from({ length: polygons[p++] }, () => ring(rings[r++])))),
    };
  };

  for (const name of ["sizes", "persons"]) data[name] = unpacked(data[name]);
  for (const view of data.views) view.of = unpacked(view.classes);
  for (const a of data.attributes) {
    for (const name of ["level", "top", "effective", "reference"]) a[name] = unpacked(a[name]);
  }
  const zones = data.h3 ? ofCells() : ofOutlines();
  const many = zones.ids.length > 20000;

  // what is published of a zone: [what, figure] pairs
  const remedyOf = (i) => { const v = data.views[0]; return v.legend[v.of[i]].label; };
  const ofAttribute = (a, i) => {
    const label = a.top[i] ? a.labels[a.top[i] - 1] : "hidden";
    const level = a.level[i] ? ` (level ${a.level[i]})` : "";
    const effective = a.effective[i] ? (a.effective[i] / 100).toFixed(2) : "–";
    return { label: label + level, effective, reference: a.scopes[a.reference[i]] };
  };
  const figures = (i) => {
    const rows = [["Persons", data.persons[i].toLocaleString("en")], ["Cells", String(data.sizes[i])], ["Remedy", remedyOf(i)]];
    for (const a of data.attributes) {
      const found = ofAttribute(a, i);
      rows.push([`${a.name}: most common`, found.label], [`${a.name}: effective count`, found.effective],
        [`${a.name}: judged against`, found.reference]);
    }
    return rows;
  };
  const card = (i) => {
    const body = element("tbody");
    for (const [what, figure] of figures(i)) {
      body.append(element("tr", {}, element("th", { scope: "row" }, what), element("td", {}, figure)));
    }
    return element("div", { class: "zone" }, element("strong", {}, `Zone ${zones.ids[i]}`), element("table", {}, body));
  };

  const map = L.map("map", { renderer: L.canvas({ padding: 0.3 }), attributionControl: Boolean(data.tiles), zoomSnap: 0.25 });
  if (data.tiles) {
    map.attributionControl.setPrefix(false);
    const credit = document.createElement("span");
    credit.textContent = data.tiles.attribution;
    L.tileLayer(data.tiles.url, { attribution: credit.innerHTML, maxZoom: 19 }).addTo(map);
  }
  L.control.scale({ imperial: false }).addTo(map);
  const line = many ? { stroke: false, smoothFactor: 0 } : { color: "#ffffff", weight: 0.8, smoothFactor: 0 };
  const shapes = zones.rings.map((rings) => L.polygon(rings, { ...line, fillOpacity: data.tiles ? 0.7 : 1 }));
  const number = new Map(shapes.map((shape, i) => [shape, i]));
  const group = L.featureGroup(shapes);
  const whole = group.getBounds();
  map.fitBounds(whole.isValid() ? whole : [[-60, -180], [75, 180]], { animate: false, padding: [12, 12] });
  map.setMaxBounds(whole.isValid() ? whole.pad(4) : null);

  const tooltip = L.tooltip({ sticky: true });
  group.on("mouseover mousemove", (event) => {
    tooltip.setLatLng(event.latlng);
    if (event.type === "mouseover") tooltip.setContent(card(number.get(event.layer))).addTo(map);
  });
  group.on("mouseout", () => tooltip.remove());
  const show = (i) => {
    tooltip.remove();
    L.popup({ autoPan: true }).setLatLng(shapes[i].getBounds().getCenter()).setContent(card(i)).openOn(map);
  };
  group.on("click", (event) => show(number.get(event.layer)));

  // switch between views
  const swatch = (entry) => {
    const of = (tag, attributes) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      return node;
    };
    const box = of("svg", { viewBox: "0 0 24 20", "aria-hidden": "true" });
    box.append(of("rect", { width: 24, height: 20, fill: entry.colour }));
    if (entry.hatch) box.append(of("path", { d: "M0 12 12 0M0 20 20 0M8 20 24 4M16 20 24 12", stroke: entry.hatch, "stroke-width": 1.6, fill: "none" }));
    return box;
  };
  const paint = (view) => {
    const colours = view.legend.map((entry) => entry.colour);
    shapes.forEach((shape, i) => shape.setStyle({ fillColor: colours[view.of[i]] }));
    byId("legend-title").textContent = view.title;
    byId("legend").replaceChildren(...view.legend.map((entry) => element("li", {}, swatch(entry),
      element("span", { class: "name" }, entry.label),
      element("span", { class: "count" }, `${entry.count.toLocaleString("en")} ${entry.of}`))));
    byId("legend-note").textContent = view.note;
    byId("map").setAttribute("aria-label", `Map of ${zones.ids.length} published zones, coloured by ${view.title}. `
      + "Arrow keys move it, plus and minus zoom. The same figures stand in the table below.");
  };
  data.views.forEach((view, i) => {
    const input = element("input", { type: "radio", name: "view", value: String(i) });
    input.checked = i === 0;
    input.addEventListener("change", () => paint(view));
    byId("views").append(element("label", {}, input, ` ${view.title}`));
  });
  paint(data.views[0]);
  group.addTo(map);

  // the same figures as a table, a page at a time
  const order = zones.ids.map((_, i) => i);
  const texts = [];
  const textOf = (i) => (texts[i] ??= [zones.ids[i], ...figures(i).map((pair) => pair[1])].join("\n").toLowerCase());
  let found = order, page = 0;
  const side = (what) => (/^(Persons|Cells)$|: effective count$/.test(what) ? { class: "number" } : {});
  const heads = ["Zone", "Persons", "Cells", "Remedy",
    ...data.attributes.flatMap((a) => [`${a.name}: most common`, `${a.name}: effective count`, `${a.name}: judged against`])];
  const fill = () => {
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const rows = found.slice(page * PAGE, (page + 1) * PAGE).map((i) => {
      const button = element("button", { type: "button", "aria-label": `Show zone ${zones.ids[i]} on the map` }, "Show");
      button.addEventListener("click", () => {
        map.fitBounds(shapes[i].getBounds().pad(3), { animate: false });
        show(i);
        byId("map").scrollIntoView({ block: "nearest" });
      });
      return element("tr", {}, element("th", { scope: "row" }, zones.ids[i]),
        ...figures(i).map(([what, figure]) => element("td", side(what), figure)),
        element("td", {}, button));
    });
    byId("rows").replaceChildren(...rows);
    byId("page").textContent = `${found.length.toLocaleString("en")} zones, page ${page + 1} of ${last + 1}`;
    byId("former").disabled = page === 0;
    byId("next").disabled = page === last;
  };
  byId("heads").append(...[...heads, "On the map"].map((head) => element("th", { scope: "col", ...side(head) }, head)));
  byId("former").addEventListener("click", () => { page -= 1; fill(); });
  byId("next").addEventListener("click", () => { page += 1; fill(); });
  byId("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? order.filter((i) => words.every((word) => textOf(i).includes(word))) : order;
    page = 0;
    fill();
  });
  fill();
  document.documentElement.dataset.ready = "yes";
};
// once the page has been shown, so that many zones are not waited for in front of an empty window
setTimeout(start, 20);
