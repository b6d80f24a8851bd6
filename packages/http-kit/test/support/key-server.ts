import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'

import { onTestFinished } from 'vitest'

/** Serves a key set over HTTP, well or badly. */
export interface KeyServer {
  readonly url: string
  /** How often it was asked. */
  asked: number
  /** What it does with a request. */
  answer: RequestListener
  /** Answers with this text. */
  serve(text: string, status?: number): void
}

export async function keyServer(text: string): Promise<KeyServer> {
  const server = createServer((incoming, response) => {
    keys.asked++
    keys.answer(incoming, response)
  })
  const keys: KeyServer = {
    url: '',
    asked: 0,
    answer: () => {},
    serve(body, status = 200) {
      keys.answer = (_incoming, response) => {
        response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' })
        response.end(body)
      }
    },
  }
  keys.serve(text)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return Object.assign(keys, { url: `http://127.0.0.1:${port}/jwks` })
}
