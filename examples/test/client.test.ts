import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { connect } from '@signalbox/client'
import { createConfig, startServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

const WORKER = fileURLToPath(new URL('../client/worker.ts', import.meta.url))

test('examples - the worker does jobs, answers queries, and finishes on SIGTERM', async () => {
  const store = await mkdtemp(join(tmpdir(), 'signalbox-worker-'))
  onTestFinished(() => rm(store, { recursive: true, force: true }))
  const server = await startServer(
    createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: store }, log: { level: 'silent' } }),
  )
  onTestFinished(() => server.close())
  const worker = spawn(process.execPath, ['--conditions=@signalbox/source', WORKER, server.http.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void worker.kill('SIGKILL'))
  await once(createInterface({ input: worker.stdout }), 'line')

  await using sb = connect(server.http.url)
  const [done] = await Promise.all([
    sb.store('jobs.done').read({ follow: true }).next(),
    sb.queue('jobs').send({ text: 'to be or not' }, { maxReceives: 3, deadLetter: 'jobs.dead' }),
  ])
  expect(done.value).toMatchObject({ data: { text: 'to be or not', words: 4 }, source: '/examples/worker' })
  await expect.poll(() => sb.query('jobs.words', 'to be or not').catch(() => undefined)).toBe(4)
  await expect(sb.query('jobs.words', 'nothing')).rejects.toThrow('no job was done for "nothing"')
  worker.kill('SIGTERM')
  expect(await once(worker, 'exit')).toEqual([0, null])
  expect(await sb.queue('jobs').peek()).toEqual([])
})
