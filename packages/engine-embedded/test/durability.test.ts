import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

import type { QueueDelivery } from '@signalbox/broker-core'

import { Folder, receive, textsOf } from './support/store.ts'

const CHILD = fileURLToPath(new URL('./support/loader-child.ts', import.meta.url))

/** Lets a process write until it has confirmed so much, kills it, and returns the lines it printed. */
async function writeAndKill(path: string, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, ['--conditions=@signalbox/source', CHILD, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => {
    printed.push(line)
    if (printed.length === lines) child.kill('SIGKILL')
  })
  await once(reader, 'close')
  return printed
}

function told(lines: readonly string[], verb: string): string[] {
  return lines.filter((line) => line.startsWith(`${verb} `)).map((line) => line.slice(verb.length + 1))
}

test('durability - after kill -9 every confirmed message exists, and every acknowledged one is removed', async () => {
  await using folder = await Folder.make()
  const [sent, acked, appended] = [new Set<string>(), new Set<string>(), new Map<string, string>()]
  for (const lines of [200, 1_001, 2_500]) {
    const printed = await writeAndKill(folder.path, lines)
    expect(printed.length).toBeGreaterThanOrEqual(lines)
    // Each process counts anew; its confirmations are told apart by the round.
    for (const text of told(printed, 'sent')) sent.add(`${lines} ${text}`)
    for (const text of told(printed, 'acked')) acked.add(`${lines} ${text}`)
    for (const line of told(printed, 'appended')) {
      const [sequence = '', text = ''] = line.split(' ')
      expect(appended.has(sequence), 'a sequence comes once').toBe(false)
      appended.set(sequence, text)
    }

    await using engine = await folder.open()
    const acking = new Set(told(printed, 'acking').map((text) => `${lines} ${text}`))
    const left = new Set<string>()
    for (let deliveries: readonly QueueDelivery[]; (deliveries = await receive(engine, 'queue')).length > 0;) {
      for (const text of textsOf(deliveries)) left.add(`${lines} ${text}`)
      await engine.queues.ack(
        deliveries.map(({ receipt }) => receipt),
        'client',
      )
    }
    // Whether an ack that was under way came to be stored, nobody was told.
    expect(
      [...sent].filter((text) => !acking.has(text) && !left.has(text)),
      'confirmed and lost',
    ).toEqual([])
    expect(
      [...acked].filter((text) => left.has(text)),
      'acknowledged and back',
    ).toEqual([])
    sent.clear()
    acked.clear()

    const entries = await engine.eventsStore.read('log', { maxMessages: 100_000 })
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, i) => i + 1))
    const stored = new Map(entries.map(({ sequence, body }) => [String(sequence), Buffer.from(body).toString()]))
    for (const [sequence, text] of appended) expect(stored.get(sequence)).toBe(text)
    const state = await engine.channels.info('events_store', 'log')
    expect(state?.eventsStore?.entries).toBe(entries.length)
  }
}, 120_000)
