import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

import { EmbeddedEngineError } from '@signalbox/engine-embedded'

import { Folder, queued } from './support/store.ts'

const CHILD = fileURLToPath(new URL('./support/loader-child.ts', import.meta.url))

test('lock - a second engine in the same process is refused, and the first goes on', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const refusal = await folder.open().then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(refusal).toBeInstanceOf(EmbeddedEngineError)
  expect(refusal).toMatchObject({ code: 'STORE_LOCKED', file: folder.file('signalbox.lock') })
  expect(String(refusal)).toContain(folder.path)
  expect(await engine.queues.send('queue', queued('x'))).toMatchObject({ sequence: 1 })
  // Refusing must not have freed the lock.
  await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_LOCKED' })
})

test('lock - a second process is refused while the first lives, and comes in when it was killed', async () => {
  await using folder = await Folder.make()
  const child = spawn(process.execPath, ['--conditions=@signalbox/source', CHILD, folder.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await once(createInterface({ input: child.stdout }), 'line')
    await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_LOCKED' })
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await using engine = await folder.open()
  expect((await engine.health()).ok).toBe(true)
})

test('lock - close frees it', async () => {
  await using folder = await Folder.make()
  await (await folder.open()).close()
  await using engine = await folder.open()
  expect(engine.path).toBe(folder.path)
})
