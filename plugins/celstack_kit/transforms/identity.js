() => ({
  pixels: (image) => image,
})
