import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'

import type { HttpRequest } from '../http-message.ts'
import type { FetchConnection } from './fetch-connection.ts'

/** A fetch request as endpoints read requests. Reads the body only when the endpoint does. */
export class FetchRequest extends Readable implements HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly socket: FetchConnection
  readonly #kept: Buffer | undefined
  readonly #source: Request['body']
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  /** @param kept The body, if the host has read it */
  constructor(request: Request, url: URL, socket: FetchConnection, kept: Buffer | undefined) {
    super()
    this.method = request.method
    this.url = url.pathname + url.search
    const entries = [...request.headers]
    this.rawHeaders = entries.flat()
    this.headers = Object.fromEntries(entries)
    // The host derives the URL from this header, and need not keep it.
    this.headers.host ??= url.host
    this.socket = socket
    this.#kept = kept
    this.#source = kept === undefined ? request.body : null
    this.on('error', ignore)
  }

  override _read(): void {
    if (this.#source === null) {
      if (this.#kept !== undefined && this.#kept.byteLength > 0) this.push(this.#kept)
      this.push(null)
      return
    }
    this.#reader ??= this.#source.getReader()
    this.#reader.read().then(
      ({ done, value }) => this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  }

  async #stop(): Promise<void> {
    try {
      await this.#reader?.cancel()
    } catch {}
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // A host that waits for the body to be read would keep it in memory.
    if (!this.readableEnded) void this.#stop()
    done(error)
  }
}

/** The client is gone: the response reports that. */
function ignore(): void {}
