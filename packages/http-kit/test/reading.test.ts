import { Buffer } from 'node:buffer'

import { BodyBytes, fairTurns, ReadingTurns } from '../src/internal.ts'
import { expect, test } from 'vitest'

test('reading - a large body is read a part at a time, and its account rests after each', async () => {
  const steps: string[] = []
  const resumed = Promise.withResolvers<void>()
  const source = {
    pause: () => void steps.push('pause'),
    resume() {
      steps.push('resume')
      resumed.resolve()
    },
  }
  const turns = new ReadingTurns('client:reader')
  for (let part = 0; part < 7; part++) turns.read(65_536, source)
  expect(steps).toEqual([])
  turns.read(65_536, source)
  expect(steps).toEqual(['pause'])
  expect(fairTurns.turnAfterOthers('client:other')).toBeUndefined()
  await resumed.promise
  expect(steps).toEqual(['pause', 'resume'])
})

test('body - chunks of any sizes are joined in order, and one that comes alone is not copied', () => {
  const body = new BodyBytes(100)
  const alone = Buffer.from('alone')
  body.add(alone, 5)
  expect(body.take()).toBe(alone)
  const parts = ['a ', 'body', '', ' in ', 'parts'].map((text) => Buffer.from(text))
  let length = 0
  for (const part of parts) body.add(part, 2 * (length += part.byteLength))
  expect([body.length, body.take().toString(), body.length]).toEqual([15, 'a body in parts', 0])
})

test('body - a body that outgrows a megabyte is moved once more, into a buffer for the largest body', () => {
  const limit = 10 * 2 ** 20
  const body = new BodyBytes(limit)
  const chunk = Buffer.alloc(65_536, 'x')
  const want = Buffer.alloc(3 * 2 ** 20, 'x')
  for (let length = chunk.byteLength; length <= want.byteLength; length += chunk.byteLength) body.add(chunk, 2 * length)
  const whole = body.take()
  expect(whole.equals(want)).toBe(true)
  expect(whole.buffer.byteLength).toBe(limit)
})

test('body - a limit that no buffer can have reserves little', () => {
  const body = new BodyBytes(Number.MAX_SAFE_INTEGER)
  const chunk = Buffer.alloc(2 ** 20, 'x')
  for (let n = 1; n <= 6; n++) body.add(chunk, 2 * n * chunk.byteLength)
  expect(body.take().buffer.byteLength).toBe(16 * 2 ** 20)
})
