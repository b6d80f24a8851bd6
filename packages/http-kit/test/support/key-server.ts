import type { RequestListener } from 'node:http'

import { testServer } from '@signalbox/testkit/test-server'

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
  const { url } = await testServer((incoming, response) => {
    keys.asked++
    keys.answer(incoming, response)
  })
  return Object.assign(keys, { url: `${url}/jwks` })
}
