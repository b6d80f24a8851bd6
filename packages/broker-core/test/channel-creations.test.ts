import { expect, test } from 'vitest'

import { ChannelCreations } from '../src/handle/channel-creations.ts'

/** Calls that create channels, each of which ends when the test ends it. */
class Calls {
  readonly creations: ChannelCreations
  readonly begun: string[] = []
  readonly ends: PromiseWithResolvers<void>[] = []
  readonly #channels = new Set<string>()

  constructor(waitMs?: number) {
    this.creations = new ChannelCreations(1, waitMs)
  }

  async create(channel: string, account: string, call = channel): Promise<void> {
    await this.creations.run(channel, account, async () => {
      this.begun.push(call)
      if (this.#channels.has(channel)) return
      const end = Promise.withResolvers<void>()
      this.ends.push(end)
      await end.promise
      this.#channels.add(channel)
    })
  }

  /** Ends the creation under way. */
  endNext(): void {
    this.ends.shift()?.resolve()
  }
}

test('channel creations - a new channel waits for one creation, however many another account has begun', async () => {
  const calls = new Calls()
  const many = Promise.all(['a', 'b', 'c', 'd'].map((channel) => calls.create(channel, 'many')))
  const one = calls.create('mine', 'one')
  await expect.poll(() => calls.begun).toEqual(['a'])
  calls.endNext()
  await expect.poll(() => calls.begun).toEqual(['a', 'b'])
  calls.endNext()
  await expect.poll(() => calls.begun).toEqual(['a', 'b', 'mine'])
  calls.endNext()
  await one
  for (const begun of ['c', 'd']) {
    await expect.poll(() => calls.begun.at(-1)).toBe(begun)
    calls.endNext()
  }
  await many
})

test('channel creations - a new channel does not wait for the long line of another account that creates it too', async () => {
  const calls = new Calls()
  const many = Promise.all(['a', 'b', 'c', 'both'].map((channel) => calls.create(channel, 'many')))
  const one = calls.create('both', 'one', 'both, for one')
  await expect.poll(() => calls.begun).toEqual(['a'])
  for (const begun of ['b', 'both, for one', 'c']) {
    calls.endNext()
    await expect.poll(() => calls.begun.at(-1)).toBe(begun)
  }
  await one
  calls.endNext()
  await many
  expect(calls.begun.at(-1)).toBe('both')
})

test('channel creations - calls for the channel that is being created keep their order and take no place', async () => {
  const calls = new Calls()
  const sent = ['first', 'second', 'third'].map((call) => calls.create('new', 'one', call))
  const other = calls.create('other', 'one')
  await expect.poll(() => calls.begun).toEqual(['first'])
  calls.endNext()
  await Promise.all(sent)
  expect(calls.begun.filter((call) => call !== 'other')).toEqual(['first', 'second', 'third'])
  await expect.poll(() => calls.ends.length).toBe(1)
  calls.endNext()
  await other
})

test('channel creations - after a failure the calls for the same channel go on at the same time', async () => {
  const calls = new Calls()
  const failed = calls.create('new', 'one', 'first')
  const others = ['second', 'third'].map((call) => calls.create('new', 'one', call))
  await expect.poll(() => calls.begun).toEqual(['first'])
  calls.ends.shift()?.reject(new Error('no space'))
  await expect(failed).rejects.toThrow('no space')
  await expect.poll(() => calls.begun).toEqual(['first', 'second', 'third'])
  calls.endNext()
  calls.endNext()
  await Promise.all(others)
})

test('channel creations - a creation that waits too long fails, and the next one gets the place', async () => {
  const calls = new Calls(20)
  const first = calls.create('first', 'many')
  await expect(calls.create('late', 'one')).rejects.toThrow('it is still creating other channels')
  calls.endNext()
  await first
  const next = calls.create('late', 'one')
  await expect.poll(() => calls.begun).toEqual(['first', 'late'])
  calls.endNext()
  await next
})
