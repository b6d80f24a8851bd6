import type { RequestListener } from 'node:http'

import { onTestFinished } from 'vitest'

import type { LoopbackServer } from './loopback.ts'
import { serveHttp } from './loopback.ts'

/** Serves HTTP on loopback until the running test ends. */
export async function testServer(listener: RequestListener): Promise<LoopbackServer> {
  const server = await serveHttp(listener)
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}
