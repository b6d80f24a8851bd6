import type { Message, Stored } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import type { CommandIo, Output } from './terminal.ts'

/** Prints messages: with `--json` whole, otherwise the body after an optional first column. */
export class MessagePrinter {
  readonly #json: boolean
  readonly #out: Output
  readonly #style: ReturnType<typeof styles>

  constructor({ line, io }: CommandCall) {
    this.#json = line.has('json')
    this.#out = io.stdout
    this.#style = styles(io, io.stdout)
  }

  /**
   * Prints a message. `column` is printed before the body, `fields` are further members of the JSON form.
   * @throws ClosedOutput
   */
  async print(message: Message, { column, fields = {} }: MessageExtras = {}): Promise<void> {
    const prefix = column === undefined ? '' : `${this.#style('dim', shown(column, this.#out))}\t`
    await this.#out.write(
      this.#json
        ? `${JSON.stringify({ ...messageJson(message), ...fields })}\n`
        : `${prefix}${shown(dataText(message.data), this.#out)}\n`,
    )
  }
}

export interface MessageExtras {
  readonly column?: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/** Returns the body as text: text unchanged, bytes in base64, other data as JSON. */
export function dataText(data: unknown): string {
  if (data === undefined) return ''
  if (typeof data === 'string') return data
  return data instanceof Uint8Array ? Buffer.from(data).toString('base64') : JSON.stringify(data)
}

/** Returns the member of the JSON form that has the body. */
export function dataJson(data: unknown): Readonly<Record<string, unknown>> {
  return data instanceof Uint8Array ? { data_base64: Buffer.from(data).toString('base64') } : { data }
}

function messageJson(message: Message): Readonly<Record<string, unknown>> {
  const { channel, id, source, type, time, contentType, metadata, tags, extensions, data } = message
  return {
    channel,
    id,
    source,
    type,
    time: time?.toISOString(),
    content_type: contentType,
    ...(metadata === '' ? {} : { metadata }),
    ...(Object.keys(tags).length === 0 ? {} : { tags }),
    ...(Object.keys(extensions).length === 0 ? {} : { extensions }),
    ...dataJson(data),
  }
}

/** Prints the result of a command: with `--json` as JSON, otherwise as text. */
export async function printResult({ line, io }: CommandCall, json: object, text: string): Promise<void> {
  await io.stdout.write(`${line.has('json') ? JSON.stringify(json) : text}\n`)
}

/** Prints the answer to a send. */
export async function printStored(call: CommandCall, channel: string, stored: Stored): Promise<void> {
  const { id, sequence, duplicate } = stored
  const note = duplicate ? 'a message with this id was stored before: ' : ''
  await printResult(call, { channel, id, sequence, duplicate }, `${channel} ${sequence}: ${note}id ${id}`)
}

/** The result of one check of a command that looks for problems. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  readonly detail: string
  /** The exit code of the command if this check is the first that failed. @default 1 */
  readonly exit?: ExitCode
}

const COLORS = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Readonly<Record<string, Style>>

/** Prints checks as they are made. */
export class CheckList {
  readonly #call: CommandCall
  #exit: ExitCode | undefined

  constructor(call: CommandCall) {
    this.#call = call
  }

  /** The code of the first check that failed; 0 if none did. */
  get exit(): ExitCode {
    return this.#exit ?? EXIT.OK
  }

  async add({ name, state, detail, exit = EXIT.FAILED }: Check): Promise<void> {
    if (state === 'failed') this.#exit ??= exit
    const { io } = this.#call
    const style = styles(io, io.stdout)
    const text = `${style(COLORS[state], state.padEnd(7))}  ${name.padEnd(14)}  ${shown(detail, io.stdout)}`
    await printResult(this.#call, { check: name, state, detail }, text)
  }
}

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
