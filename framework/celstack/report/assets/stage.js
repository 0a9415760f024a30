"use strict";

/** The stage: the rendered scene, the selection, and pointer gestures. */
Object.assign(window.celstack, (() => {
  const { about, chained, clamp, extent, shift, Painter, toPicture } = window.celstack;
  const MIN_VISIBLE = 0.3; // visibility at which an object can be picked
  const HANDLE_RADIUS = 7; // in CSS pixels
  const HANDLE_REACH = 18; // distance at which a finger hits a handle, in CSS pixels

  class Stage {
    constructor(part, model) {
      this.model = model;
      this.painter = new Painter(model);
      this.frame = part("stage");
      this.canvas = part("canvas");
      this.overlay = part("overlay");
      Object.assign(this.canvas, { width: model.width, height: model.height });
      this.frame.style.setProperty("--editor-shape", model.width / model.height);
      this.overlay.setAttribute("viewBox", `0 0 ${model.width} ${model.height}`);
      this.rendering = null;
    }

    paint(scene) {
      const { channels, height, width } = this.model;
      this.rendering = this.painter.render(scene);
      const picture = toPicture(this.rendering.image, channels, height, width);
      this.canvas.getContext("2d").putImageData(picture, 0, 0);
    }

    /** Return the layer that is visible at a pixel, or null. */
    pick(column, row) {
      const pixel = Math.floor(row) * this.model.width + Math.floor(column);
      let best = null;
      let most = MIN_VISIBLE;
      this.rendering.visible.forEach((visible, layer) => {
        if (visible && visible[pixel] > most) {
          [best, most] = [layer, visible[pixel]];
        }
      });
      return best;
    }

    /** Return the bounding box of a layer in pixels, or null if it is empty. */
    box(layer, rendering = this.rendering) {
      const alpha = rendering.alpha[layer];
      const { width, height } = this.model;
      const box = { left: width, top: height, right: 0, bottom: 0 };
      for (let pixel = 0; alpha && pixel < alpha.length; pixel++) {
        if (alpha[pixel] > MIN_VISIBLE) {
          const [column, row] = [pixel % width, Math.floor(pixel / width)];
          box.left = Math.min(box.left, column);
          box.right = Math.max(box.right, column + 1);
          box.top = Math.min(box.top, row);
          box.bottom = Math.max(box.bottom, row + 1);
        }
      }
      return box.right > box.left ? box : null;
    }

    /**
     * Return the center of mass of a layer, which a rotation about it does not change; the
     * center of the canvas if the layer is off the canvas.
     */
    center(layer, rendering = this.rendering) {
      const alpha = rendering.alpha[layer];
      const sums = { x: 0, y: 0, mass: 0 };
      for (let pixel = 0; alpha && pixel < alpha.length; pixel++) {
        const mass = clamp(alpha[pixel], 0, 1);
        sums.mass += mass;
        sums.x += mass * this.painter.points[2 * pixel];
        sums.y += mass * this.painter.points[2 * pixel + 1];
      }
      return sums.mass > MIN_VISIBLE
        ? { x: sums.x / sums.mass, y: sums.y / sums.mass } : { x: 0, y: 0 };
    }

    toPoint(column, row) {
      const { height, width } = this.model;
      const [reachX, reachY] = extent(height, width);
      return { x: (column * (2 / width) - 1) * reachX, y: (row * (2 / height) - 1) * reachY };
    }

    /** Return the position of a pointer in pixels of the canvas. */
    toPixel(event) {
      const { left, top, width, height } = this.frame.getBoundingClientRect();
      return [
        ((event.clientX - left) / width) * this.model.width,
        ((event.clientY - top) / height) * this.model.height,
      ];
    }

    /** Draw a box around a layer, with handles to resize and rotate it. */
    outline(layer, able) {
      const box = layer === null ? null : this.box(layer);
      this.overlay.replaceChildren();
      this.handles = {};
      if (!box) {
        return;
      }
      const unit = this.model.width / (this.frame.clientWidth || this.model.width);
      const size = { x: box.left, y: box.top, width: box.right - box.left,
        height: box.bottom - box.top };
      this.draw("rect", { ...size, class: "editor-box-under" });
      this.draw("rect", { ...size, class: "editor-box" });
      const inside = (value, most) => clamp(value, HANDLE_RADIUS * unit, most - HANDLE_RADIUS * unit);
      const knob = (kind, column, row) => {
        const at = [inside(column, this.model.width), inside(row, this.model.height)];
        this.handles[kind] = { at, reach: HANDLE_REACH * unit };
        this.draw("circle", { cx: at[0], cy: at[1], r: HANDLE_RADIUS * unit, class: "editor-knob",
          "data-handle": kind });
      };
      if (able.scale) {
        knob("scale", box.right, box.bottom);
      }
      if (able.turn) {
        knob("turn", box.right, box.top);
      }
    }

    draw(name, attributes) {
      const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
      Object.entries(attributes).forEach(([key, value]) => shape.setAttribute(key, value));
      this.overlay.append(shape);
    }

    /** Return the nearest handle within reach of a pixel, or null. */
    handleAt([column, row]) {
      const away = ({ at }) => Math.hypot(at[0] - column, at[1] - row);
      const found = Object.entries(this.handles || {})
        .filter(([, handle]) => away(handle) <= handle.reach)
        .sort(([, one], [, other]) => away(one) - away(other));
      return found.length ? found[0][0] : null;
    }

    /**
     * Handle pointer events. `grab(pixel)` returns the kind of gesture and the layer that
     * starts there, or null; `move(layer, matrix, gesture)` is called with the movement since
     * then, `drop(kind)` at its end.
     */
    listen({ grab, move, drop, able }) {
      const pointers = new Map();
      let held = null;
      // A touch that grabs no object scrolls the page.
      this.frame.addEventListener("touchstart", (event) => {
        if (held) {
          event.preventDefault();
        }
      }, { passive: false });
      this.frame.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) {
          return;
        }
        const pixel = this.toPixel(event);
        if (pointers.size === 0) {
          held = grab(pixel);
        }
        if (held) {
          pointers.set(event.pointerId, { from: pixel, to: pixel });
          this.frame.setPointerCapture(event.pointerId);
          held = { ...held, center: this.center(held.layer), gesture: {}, moved: false };
          pointers.forEach((pointer) => { pointer.from = pointer.to; });
        }
      });
      this.frame.addEventListener("pointermove", (event) => {
        if (!held || !pointers.has(event.pointerId)) {
          return;
        }
        pointers.get(event.pointerId).to = this.toPixel(event);
        const matrix = this.gestureMatrix(held, [...pointers.values()], able);
        held.moved = true;
        move(held.layer, matrix, held.gesture);
      });
      const end = (event) => {
        if (pointers.delete(event.pointerId) && pointers.size === 0) {
          if (held.moved) {
            drop(held.kind);
          }
          held = null;
        }
      };
      this.frame.addEventListener("pointerup", end);
      this.frame.addEventListener("pointercancel", end);
    }

    /** Convert the movement of one or two pointers to a matrix. */
    gestureMatrix({ kind, center }, pointers, able) {
      const [from, to] = ["from", "to"].map((end) =>
        pointers.map((pointer) => this.toPoint(...pointer[end])));
      const moved = shift(to[0].x - from[0].x, to[0].y - from[0].y);
      if (pointers.length === 1 && kind === "move") {
        return able.move ? moved : shift(0, 0);
      }
      // The fixed point is the object's center with one pointer, the other pointer with two.
      const [fixedFrom, fixedTo] = pointers.length > 1 ? [from[1], to[1]] : [center, center];
      const length = (point, other) => Math.hypot(point.x - other.x, point.y - other.y) || 1e-3;
      const angle = (point, other) => Math.atan2(point.y - other.y, point.x - other.x);
      const scale = clamp(length(to[0], fixedTo) / length(from[0], fixedFrom), 0.05, 20);
      const turn = angle(to[0], fixedTo) - angle(from[0], fixedFrom);
      const both = pointers.length > 1;
      const turned = about(fixedFrom,
        able.scale && (both || kind === "scale") ? scale : 1,
        able.turn && (both || kind === "turn") ? turn : 0);
      const shifted = shift(fixedTo.x - fixedFrom.x, fixedTo.y - fixedFrom.y);
      return chained(able.move ? shifted : shift(0, 0), turned);
    }
  }

  return { Stage };
})());
