import { once } from 'node:events'
import { PassThrough } from 'node:stream'

import { onTestFinished } from 'vitest'

import { Bridge } from '@signalbox/cli/mcp-bridge'

/** A message that the host reads. */
export interface Received {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly message?: string }
  readonly result?: {
    readonly protocolVersion?: string
    readonly content?: readonly { readonly text: string }[]
    readonly isError?: boolean
  }
  readonly error?: { readonly code: number; readonly message: string }
}

/** The host's side of a bridge in this process. */
export interface BridgeHost {
  readonly input: PassThrough
  readonly output: PassThrough
  /** The lines on stderr. */
  readonly log: readonly string[]
  /** All lines so far, as they were written. */
  readonly lines: readonly string[]
  readonly ended: Promise<void>
  send(message: object | string): void
  /** Resolves with the first message that fits, one that was before included. */
  received(fits: (message: Received) => boolean): Promise<Received>
}

export function bridgeTo(url: string, token?: string): BridgeHost {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const log: string[] = []
  const lines: string[] = []
  let rest = ''
  output.setEncoding('utf8').on('data', (text: string) => {
    const parts = `${rest}${text}`.split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
    output.emit('line')
  })
  const bridge = new Bridge({ url: new URL(url), token, input, output, log: (line) => void log.push(line) })
  const ended = bridge.run()
  onTestFinished(async () => {
    bridge.stop()
    await ended
  })
  return {
    input,
    output,
    log,
    lines,
    ended,
    send: (message) => void input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    async received(fits) {
      for (;;) {
        const found = lines.map((line) => JSON.parse(line) as Received).find(fits)
        if (found !== undefined) return found
        await once(output, 'line')
      }
    },
  }
}
