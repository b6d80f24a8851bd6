/** A Markdown table as the formatter leaves it: columns padded to their widest cell. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows].map((cells) => cells.map((cell) => cell.replaceAll('|', String.raw`\|`)))
  const widths = header.map((_, i) => Math.max(3, ...lines.map((cells) => (cells[i] ?? '').length)))
  const [first = '', ...rest] = lines.map((cells) => row(widths.map((width, i) => (cells[i] ?? '').padEnd(width))))
  return [first, row(widths.map((width) => '-'.repeat(width))), ...rest].join('\n')
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

/** The generated part of a page, without its marks. Throws if the page has no marks of this name. */
export function section(page: string, name: string): string {
  const [, text] = marks(name).exec(page) ?? []
  if (text === undefined) throw new Error(`The page has no section "${name}".`)
  return text
}

/** The page with one generated part replaced. */
export function withSection(page: string, name: string, text: string): string {
  section(page, name)
  return page.replace(marks(name), () => `${begin(name)}\n\n${text}\n\n${END}`)
}

const END = '<!-- end of generated part -->'

function begin(name: string): string {
  return `<!-- generated: ${name} (npm run docs -w signalbox) -->`
}

function marks(name: string): RegExp {
  const escaped = begin(name).replaceAll(/[()]/g, String.raw`\$&`)
  return new RegExp(`${escaped}\n\n([^]*?)\n\n${END}`)
}
