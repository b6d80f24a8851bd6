import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import type { EmbeddedEngine, EmbeddedEngineProblem } from '@signalbox/engine-embedded'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { eventually } from '@signalbox/testkit/until'

// The seam for faults is not part of the package's surface.
import { openEngine } from '../src/engine.ts'
import { CLIENT, Folder, storedEvent, queued, receive, textsOf } from './support/store.ts'

const NO_FAULT = 0
const FULL = 1
const FAILED_SYNC = 2
const FAILED_SYNC_BUT_WRITTEN = 3

/** The time for which a step may last on a busy machine, in ms. */
const PATIENCE_MS = 40_000

const FULL_DETAIL = /^the disk is full; messages are accepted when [\d.]+ MiB are free$/

/** A lease that outlives its test. */
const LEASE_MS = 300_000

/** Sends until told to stop; keeps what was confirmed, and every error. */
class Load {
  readonly confirmed: string[] = []
  readonly errors: unknown[] = []
  readonly #producers: Promise<void>[]
  #stopped = false

  constructor(engine: EmbeddedEngine, name: string) {
    this.#producers = Array.from({ length: 16 }, (_, i) => this.#produce(engine, `${name}-${i}`))
  }

  async #produce(engine: EmbeddedEngine, producer: string): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const text = `${producer}-${i}`
      try {
        await engine.queues.send('queue', queued(text))
        this.confirmed.push(text)
        await engine.eventsStore.append('log', storedEvent(text))
      } catch (error) {
        this.errors.push(error)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }

  async confirms(count: number): Promise<void> {
    const from = this.confirmed.length
    await eventually(() => assert(this.confirmed.length >= from + count, 'more is confirmed'), PATIENCE_MS)
  }

  async fails(count: number): Promise<void> {
    const from = this.errors.length
    await eventually(() => assert(this.errors.length >= from + count, 'more fails'), PATIENCE_MS)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#producers)
  }
}

async function drain(engine: EmbeddedEngine): Promise<string[]> {
  const texts: string[] = []
  for (;;) {
    const deliveries = await receive(engine, 'queue')
    if (deliveries.length === 0) return texts
    texts.push(...textsOf(deliveries).map(String))
    const receipts = deliveries.map(({ receipt }) => receipt)
    expect(await engine.queues.ack(receipts, CLIENT)).toEqual({ settled: receipts.length, lost: [] })
  }
}

function expectUnavailable(errors: readonly unknown[], reason: RegExp): void {
  expect(errors.length).toBeGreaterThan(0)
  for (const error of errors) {
    expect(error).toMatchObject({ code: 'ENGINE_UNAVAILABLE', details: { reason: expect.stringMatching(reason) } })
  }
}

async function expectConsistent(engine: EmbeddedEngine, load: Load): Promise<void> {
  const entries = await engine.eventsStore.read('log', { maxMessages: 1_000_000 })
  expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, i) => i + 1))
  const texts = await drain(engine)
  expect(new Set(texts).size, 'nothing comes twice').toBe(texts.length)
  const there = new Set(texts)
  expect(load.confirmed.filter((text) => !there.has(text))).toEqual([])
  const state = await engine.channels.info('queues', 'queue')
  expect(state?.queue).toMatchObject({ waiting: 0, inFlight: 0, bytes: 0 })
}

test('full disk - writes fail with an error, reads continue, and writes resume automatically, under load', async () => {
  await using folder = await Folder.make()
  const faults = new Int32Array(new SharedArrayBuffer(4))
  const problems: EmbeddedEngineProblem[] = []
  const options = { path: folder.path, onProblem: (problem: EmbeddedEngineProblem) => problems.push(problem) }
  await using engine = await openEngine(options, faults)
  const load = new Load(engine, 'load')
  await load.confirms(500)

  Atomics.store(faults, 0, FULL)
  await load.fails(100)
  expect(problems.map(({ kind }) => kind)).toEqual(['full'])
  const health = await engine.health()
  expect(health.ok).toBe(false)
  expect(health.checks).toContainEqual({ name: 'writes', ok: false, detail: expect.stringMatching(FULL_DETAIL) })
  expect(health.checks).toContainEqual({ name: 'store', ok: true, detail: 'open' })
  expect((await engine.queues.peek('queue', { maxMessages: 5 })).length).toBe(5)
  expect((await engine.eventsStore.readLatest('log', { maxMessages: 5 })).length).toBe(5)
  const [delivery] = await receive(engine, 'queue', { maxMessages: 1, leaseMs: LEASE_MS })
  const receipts = [delivery?.receipt ?? '']
  await expect(engine.queues.ack(receipts, CLIENT)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })

  await load.stop()
  Atomics.store(faults, 0, NO_FAULT)
  // Nobody writes now: the engine finds out alone.
  await eventually(async () => expect((await engine.health()).ok).toBe(true), PATIENCE_MS)
  expect(problems.map(({ kind }) => kind)).toEqual(['full', 'healed'])
  expectUnavailable(load.errors, /the disk is full/)
  expect(await engine.queues.ack(receipts, CLIENT), 'the lease outlived the full disk').toMatchObject({ settled: 1 })
  load.confirmed.splice(load.confirmed.indexOf(textsOf(delivery ? [delivery] : []).join('')), 1)
  await expectConsistent(engine, load)
}, 120_000)

test('failed sync - the store is reopened and read again, and nothing confirmed is lost, under load', async () => {
  await using folder = await Folder.make()
  const faults = new Int32Array(new SharedArrayBuffer(4))
  const problems: EmbeddedEngineProblem[] = []
  const options = { path: folder.path, onProblem: (problem: EmbeddedEngineProblem) => problems.push(problem) }
  await using engine = await openEngine(options, faults)
  const load = new Load(engine, 'load')
  await load.confirms(500)
  const [held] = await receive(engine, 'queue', { maxMessages: 1, leaseMs: LEASE_MS })
  const followed: number[] = []
  await engine.eventsStore.subscribe('log', { from: 'first' }, {}, ({ sequence }) => void followed.push(sequence))

  for (const fault of [FAILED_SYNC, FAILED_SYNC_BUT_WRITTEN, FAILED_SYNC]) {
    Atomics.store(faults, 0, fault)
    await load.fails(20)
    // It is opened again at times, and fails again.
    await eventually(async () => expect((await engine.health()).ok).toBe(false))
    Atomics.store(faults, 0, NO_FAULT)
    await eventually(async () => expect((await engine.health()).ok).toBe(true), PATIENCE_MS)
    await load.confirms(200)
  }
  await load.stop()
  expect(problems.map(({ kind }) => kind)).toContain('failed')
  expect(problems.at(-1)?.kind).toBe('healed')
  expectUnavailable(load.errors, /store failed|SQLITE_IOERR_FSYNC|closed/)

  const { lastSequence = 0 } = (await engine.channels.info('events_store', 'log'))?.eventsStore ?? {}
  await eventually(() => expect(followed.length).toBe(lastSequence), PATIENCE_MS)
  expect(followed).toEqual(followed.map((_, i) => i + 1))
  const receipts = [held?.receipt ?? '']
  expect(await engine.queues.ack(receipts, CLIENT), 'the lease outlived the failure').toMatchObject({ settled: 1 })
  load.confirmed.splice(load.confirmed.indexOf(textsOf(held ? [held] : []).join('')), 1)
  await expectConsistent(engine, load)
  await engine.close()
  await using again = await folder.open()
  expect(await receive(again, 'queue')).toEqual([])
}, 120_000)

/** A small file system, where the machine lets us have one. */
function tinyDisk(size = '4m'): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const path = mkdtempSync(join(tmpdir(), 'signalbox-tiny-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path])
  if (status === 0) return path
  rmSync(path, { recursive: true })
  return undefined
}

/** Fills a file system to its last byte. */
function fillUp(tiny: string): string {
  const file = join(tiny, 'other')
  const other = openSync(file, 'w')
  expect(() => {
    for (;;) writeSync(other, Buffer.alloc(4096))
  }).toThrow('ENOSPC')
  closeSync(other)
  return file
}

test('full disk - a file system that is really full', async ({ skip }) => {
  const tiny = tinyDisk() ?? skip('it takes root to mount one')
  try {
    const path = join(tiny, 'store')
    await using engine = await openEmbeddedEngine({ path })
    const confirmed: string[] = []
    const fill = async (): Promise<void> => {
      for (let i = 0; i < 1_000; i++) {
        const text = `${i} ${'x'.repeat(20_000)}`
        await engine.queues.send('queue', queued(text))
        confirmed.push(text)
      }
    }
    const reason = 'the disk is full'
    await expect(fill()).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE', details: { reason } })
    expect(confirmed.length).toBeGreaterThan(20)
    expect((await engine.health()).ok).toBe(false)
    expect(await engine.queues.peek('queue', { maxMessages: 1_000 })).toHaveLength(confirmed.length)

    // Another program takes the rest, and gives it back.
    const other = join(tiny, 'other')
    await writeFile(other, Buffer.alloc(8 * 1024 * 1024)).catch(() => {})
    await expect(engine.queues.send('queue', queued('y'.repeat(50_000)))).rejects.toMatchObject({
      code: 'ENGINE_UNAVAILABLE',
    })
    await rm(other)
    spawnSync('mount', ['-o', 'remount,size=64m', tiny])
    await eventually(async () => expect((await engine.health()).ok).toBe(true), PATIENCE_MS)
    await engine.queues.send('queue', queued('last'))
    expect(await drain(engine)).toEqual([...confirmed, 'last'])
  } finally {
    spawnSync('umount', [tiny])
    rmSync(tiny, { recursive: true, force: true })
  }
}, 60_000)

test('full disk - acknowledged messages stay removed without any space, and their space is used again', async ({
  skip,
}) => {
  const tiny = tinyDisk('24m') ?? skip('it takes root to mount one')
  try {
    const path = join(tiny, 'store')
    const reserve = join(path, 'signalbox.reserve')
    const confirmed: string[] = []
    {
      await using engine = await openEmbeddedEngine({ path })
      await eventually(() => assert(existsSync(reserve), 'room is set aside'))
      const fill = async (): Promise<void> => {
        for (let i = 0; ; i++) {
          const texts = Array.from({ length: 5 }, (_, j) => `${i}-${j} ${'x'.repeat(20_000)}`)
          await engine.queues.sendBatch(
            'queue',
            texts.map((text) => queued(text)),
          )
          confirmed.push(...texts)
        }
      }
      await expect(fill()).rejects.toMatchObject({ details: { reason: 'the disk is full' } })
      expect(confirmed.length).toBeGreaterThan(100)
      fillUp(tiny)
      // Enough that they are not kept in memory, in several rounds.
      for (let left = confirmed.length - 20; left > 0; left -= 20) {
        const deliveries = await receive(engine, 'queue', { maxMessages: Math.min(20, left) })
        const receipts = deliveries.map(({ receipt }) => receipt)
        expect(await engine.queues.ack(receipts, CLIENT)).toEqual({ settled: receipts.length, lost: [] })
      }
      await engine.close()
    }
    await using engine = await openEmbeddedEngine({ path })
    expect((await engine.channels.info('queues', 'queue'))?.queue?.waiting).toBe(20)
    await eventually(() => engine.queues.send('queue', queued('last')).then(() => {}))
    expect(await drain(engine)).toEqual([...confirmed.slice(-20), 'last'])
    await eventually(() => assert(existsSync(reserve), 'room is set aside again'))
  } finally {
    spawnSync('umount', [tiny])
    rmSync(tiny, { recursive: true, force: true })
  }
}, 60_000)

test.for(['the reserve is gone', 'the reserve is there'])(
  'full disk - health says so right after a restart, and the reserve is made again, when %s',
  { timeout: 60_000 },
  async (state, { skip }) => {
    const tiny = tinyDisk('8m') ?? skip('it takes root to mount one')
    try {
      const path = join(tiny, 'store')
      const reserve = join(path, 'signalbox.reserve')
      const problems: EmbeddedEngineProblem[] = []
      {
        await using engine = await openEmbeddedEngine({ path })
        await engine.queues.send('queue', queued('kept'))
        await engine.channels.create('events_store', 'log', { compacted: true })
        await eventually(() => assert(existsSync(reserve), 'room is set aside'))
      }
      const small = join(tiny, 'small')
      if (state === 'the reserve is gone') {
        rmSync(reserve)
        await writeFile(small, Buffer.alloc(256 * 1024))
      }
      const other = fillUp(tiny)
      rmSync(small, { force: true })

      await using engine = await openEmbeddedEngine({ path, onProblem: (problem) => problems.push(problem) })
      const { ok, checks } = await engine.health()
      expect(ok).toBe(false)
      expect(checks).toContainEqual({ name: 'writes', ok: false, detail: expect.stringMatching(FULL_DETAIL) })
      expect(problems.map(({ kind }) => kind)).toEqual(['full'])
      expect(problems[0]?.message).toMatch(/accepts no more messages until [\d.]+ MiB are free/)
      await expect(engine.queues.send('queue', queued('refused'))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
      // The start of a server repeats this for its own channels.
      expect(await engine.channels.create('events_store', 'log', { compacted: true })).toBe(false)
      await expect(engine.channels.create('queues', 'new')).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })

      rmSync(other)
      await eventually(async () => expect((await engine.health()).ok).toBe(true), PATIENCE_MS)
      expect(problems.map(({ kind }) => kind)).toEqual(['full', 'healed'])
      expect(existsSync(reserve)).toBe(true)
      expect(await drain(engine)).toEqual(['kept'])
    } finally {
      spawnSync('umount', [tiny])
      rmSync(tiny, { recursive: true, force: true })
    }
  },
)

test('full disk - health finds a disk that another program filled, without a send', async ({ skip }) => {
  const tiny = tinyDisk('8m') ?? skip('it takes root to mount one')
  try {
    const path = join(tiny, 'store')
    const reserve = join(path, 'signalbox.reserve')
    const problems: EmbeddedEngineProblem[] = []
    await using engine = await openEmbeddedEngine({ path, onProblem: (problem) => problems.push(problem) })
    await eventually(() => assert(existsSync(reserve), 'room is set aside'))
    rmSync(reserve)
    await eventually(() => assert(existsSync(reserve), 'a lost reserve is made again'), PATIENCE_MS)
    expect(problems).toEqual([])

    const other = fillUp(tiny)
    await eventually(() => expect(problems.map(({ kind }) => kind)).toEqual(['full']), PATIENCE_MS)
    expect((await engine.health()).ok).toBe(false)
    rmSync(other)
    await eventually(() => expect(problems.map(({ kind }) => kind)).toEqual(['full', 'healed']), PATIENCE_MS)
    expect(existsSync(reserve)).toBe(true)
  } finally {
    spawnSync('umount', [tiny])
    rmSync(tiny, { recursive: true, force: true })
  }
}, 90_000)
