/** Offers text as a file that the browser saves. */
export function saveFile(name: string, lines: readonly string[]): void {
  // The type keeps a browser from showing the file as a page.
  const url = URL.createObjectURL(new Blob([...lines], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
