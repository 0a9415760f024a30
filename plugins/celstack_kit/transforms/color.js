(options, celstack) => {
  // A larger gain would saturate all shades of a color; the offset supplies the rest.
  const MAX_GAIN = 3;

  return {
    pixels(image, params) {
      const channels = image.depth - 1;
      const size = image.height * image.width;
      const data = Float32Array.from(image.data);
      for (let channel = 0; channel < channels; channel++) {
        const gain = 1 + params[channel];
        const offset = params[channels + channel];
        for (let at = channel * size; at < (channel + 1) * size; at++) {
          data[at] = celstack.softclip(data[at] * gain + offset);
        }
      }
      return { ...image, data };
    },

    recolour(from, to) {
      const gains = from.map((value, channel) =>
        value > 0 ? Math.min(to[channel] / value, MAX_GAIN) : 1);
      const offsets = from.map((value, channel) => to[channel] - gains[channel] * value);
      return [...gains.map((gain) => gain - 1), ...offsets];
    },
  };
}
