import type { MessageOptions } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import type { CommandIo } from './terminal.ts'

/** The content of a message that a command sends. */
export interface Body {
  readonly data: unknown
  readonly contentType: string | undefined
}

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json\s*(?:;|$)/i

/** Yields the bodies of a command line: one, or with `--lines` one for each line. `-` is stdin. */
export async function* bodiesOf(call: CommandCall, position: number): AsyncGenerator<Body, void, void> {
  const { line, io } = call
  const word = line.word(position)
  if (!line.has('lines')) {
    yield bodyOf(call, word === '-' ? await readAll(io.stdin) : Buffer.from(word))
    return
  }
  const source = word === '-' ? linesOf(io) : word.split('\n')
  for await (const each of source) if (each !== '') yield bodyOf(call, Buffer.from(each))
}

/** Returns the options of a message that a command sends. */
export function messageOptions({ line }: CommandCall, { contentType }: Body): MessageOptions {
  return { id: line.value('id'), type: line.value('type'), contentType }
}

/** Returns the text of a word; `-` is stdin. */
export async function wordText({ line, io }: CommandCall, position: number): Promise<string> {
  const word = line.word(position)
  return word === '-' ? (await readAll(io.stdin)).toString() : word
}

async function readAll(stdin: CommandIo['stdin']): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function* linesOf({ stdin, signal }: CommandIo): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stdin) {
    if (signal.aborted) return
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split(/\r?\n/)
    rest = lines.pop() ?? ''
    yield* lines
  }
  yield rest
}

function bodyOf({ line }: CommandCall, bytes: Buffer): Body {
  const given = line.value('content-type')
  const text = utf8Text(bytes)
  if (text === undefined) return { data: bytes, contentType: given }
  const asJson = given === undefined ? /^\s*[{[]/.test(text) : JSON_TYPE.test(given)
  const parsed = asJson ? parse(text) : undefined
  if (parsed === undefined) {
    if (asJson && given !== undefined)
      throw line.invalid('BODY', text.slice(0, 100), `JSON, because of --content-type ${given}`)
    return { data: text, contentType: given }
  }
  const contentType = given ?? 'application/json'
  // Numbers of more digits than a double has are sent as they are written.
  return { data: keepsNumbers(text) ? parsed.value : bytes, contentType }
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function keepsNumbers(json: string): boolean {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? []
  return tokens.every((token) => token.startsWith('"') || String(Number(token)) === token)
}

function utf8Text(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
