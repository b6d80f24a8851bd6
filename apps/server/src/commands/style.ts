import type { CommandIo, Output } from './command-io.ts'

const CODES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const

export type Style = keyof typeof CODES

/** Returns a function that styles text, on terminals only and not with `NO_COLOR`. */
export function styles({ env }: Pick<CommandIo, 'env'>, { terminal }: Output): (style: Style, text: string) => string {
  const plain = !terminal || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return (style, text) => {
    const [on, off] = CODES[style]
    return plain || text === '' ? text : `\u001b[${on}m${text}\u001b[${off}m`
  }
}

/** Replaces control characters on terminals: a message could otherwise move the cursor or change the title. */
export function shown(text: string, { terminal }: Output): string {
  if (!terminal) return text
  // oxlint-disable-next-line no-control-regex -- these are the characters to replace
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Returns lines of columns. Numbers are aligned to the right. */
export function table(rows: readonly (readonly (string | number)[])[]): readonly string[] {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, String(cell).length)
  }
  return rows.map((row) =>
    row
      .map((cell, i) =>
        typeof cell === 'number' ? String(cell).padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
}
