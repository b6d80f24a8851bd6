import { readFile, writeFile } from 'node:fs/promises'

import { expect, onTestFinished } from 'vitest'

import { Folder, storedEvent, queued } from './store.ts'

export const PAGE = 8192
const PADDING = 'x'.repeat(2_000)

/** A store with a queue and an events store of each name, with 40 messages in each, closed. */
export async function storeWith(...names: readonly string[]): Promise<Folder> {
  const folder = await Folder.make()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const engine = await folder.open()
  for (const name of names) {
    const messages = (kind: string): string[] => Array.from({ length: 40 }, (_, i) => `${kind} ${name} ${i} ${PADDING}`)
    await Promise.all([
      engine.queues.sendBatch(
        name,
        messages('queue').map((text) => queued(text)),
      ),
      ...messages('log').map((text) => engine.eventsStore.append(name, storedEvent(text))),
    ])
  }
  await engine.close()
  return folder
}

/** Overwrites the page of the data file that holds this text. */
export async function damage(folder: Folder, text: string): Promise<void> {
  const file = folder.file('signalbox.db')
  const bytes = await readFile(file)
  const at = bytes.indexOf(text)
  expect(at).toBeGreaterThan(PAGE)
  const page = Math.floor(at / PAGE) * PAGE
  bytes.fill(0xab, page, page + PAGE)
  await writeFile(file, bytes)
}
