import type { Message } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import type { Output } from './command-io.ts'
import { shown, styles } from './style.ts'

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
