import { Buffer } from 'node:buffer'

import { Finding } from '../target.ts'

/** Internal errors that the specification requires: they are not a fault of the server. */
const ALLOWED_INTERNAL = [
  /^server busy/,
  /^agent response too large/,
  /^the broker is not available/,
  /^stream interrupted/,
  /^slow consumer/,
  /^this endpoint allows \d+ open streams/,
]

/** Codes for which the specification requires status 500. */
const ALLOWED_500 = /"code":"(?:UPGRADE_FAILED|MONITOR_LIMIT)"/

/** @throws Finding for an answer that no input may get */
export function checkAnswer(what: string, received: Buffer): void {
  if (received.length === 0) return
  const text = received.toString('utf8')
  if (!text.startsWith('HTTP/1.1 '))
    throw new Finding('answer', `${what} got an answer that is not HTTP: got ${text.slice(0, 200)}`)
  for (const [, status = ''] of text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
    if (status === '500' && !ALLOWED_500.test(text))
      throw new Finding('answer', `${what} is answered with 500: got ${text.slice(-1_000)}`)
  }
  for (const [, message = ''] of text.matchAll(/"code":-32603,"message":"((?:[^"\\]|\\.)*)"/g)) {
    if (!ALLOWED_INTERNAL.some((allowed) => allowed.test(message))) {
      throw new Finding('answer', `${what} is answered with -32603: got ${message.slice(0, 500)}`)
    }
  }
  checkJson(what, text)
}

/** A complete answer with a JSON content type must be valid JSON. */
function checkJson(what: string, text: string): void {
  const headEnd = text.indexOf('\r\n\r\n')
  const head = text.slice(0, headEnd)
  const body = text.slice(headEnd + 4)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined || !/\r\ncontent-type: *application\/[a-z+-]*json/i.test(head)) return
  if (Buffer.byteLength(body) !== Number(length) || body.includes('\ufffd')) return
  try {
    JSON.parse(body)
  } catch (error) {
    throw new Finding('answer', `${what} got invalid JSON: got ${body.slice(0, 500)}`, {
      cause: error,
    })
  }
}
