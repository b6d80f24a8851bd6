import { execFile } from 'node:child_process'
import process from 'node:process'
import { Writable } from 'node:stream'
import { promisify } from 'node:util'

import pino from 'pino'
import { expect, test } from 'vitest'

import { LOG_FORM } from '../src/logging/logger.ts'

const SOURCE = new URL('../src/', import.meta.url)

/** Runs a piece of code that has a `log` and an `announcer`, and resolves with what it wrote to standard output. */
async function outputOf(format: string, code: string): Promise<string> {
  const prelude = `
    import { createAnnouncer, createLogger } from '${new URL('logging/logger.ts', SOURCE).href}'
    import { crashOnUnhandledErrors } from '${new URL('lifecycle/signals.ts', SOURCE).href}'
    const log = await createLogger({ level: 'info', format: '${format}' })
    const announcer = createAnnouncer()
    crashOnUnhandledErrors(announcer)
  `
  const args = ['--conditions=@signalbox/source', '--input-type=module', '--eval', prelude + code]
  const run = promisify(execFile)(process.execPath, args)
  const { stdout } = await run.catch((error: { stdout: string }) => error)
  return stdout
}

/** The numbers of the lines in an output. */
function written(output: string): readonly number[] {
  return [...output.matchAll(/line (\d+)/g)].map(([, number]) => Number(number))
}

test('log - secrets are left out wherever headers or credentials are logged', () => {
  let text = ''
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  const log = pino(LOG_FORM, sink)
  log.info({ req: { headers: { authorization: 'Bearer s3cret', cookie: 'id=s3cret', host: 'x' } } }, 'request')
  log.info({ token: 's3cret', config: { secret: 's3cret', password: 's3cret' } }, 'settings')
  expect(text).not.toContain('s3cret')
  const [first] = text.split('\n')
  expect(JSON.parse(first!)).toMatchObject({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    msg: 'request',
    req: { headers: { authorization: '[redacted]', cookie: '[redacted]', host: 'x' } },
  })
})

test.each(['json', 'pretty'])('log - lines logged just before an end or a crash are written (%s)', async (format) => {
  const lines = `for (let i = 0; i < 100; i++) log.info('line ' + i)\n`
  const all = Array.from({ length: 100 }, (_, i) => i)
  const ends = await Promise.all(
    ['', 'process.exit(3)', `throw new Error('crash')`, `Promise.reject(new Error('crash'))`].map((end) =>
      outputOf(format, lines + end),
    ),
  )
  expect(ends.map(written)).toEqual([all, all, all, all])
  for (const end of ends.slice(2)) expect(end.trimEnd().split('\n').at(-1)).toContain('signalbox crashed: crash')
})

test('log - lines of several loggers keep their order, and a fatal one is on its way at once', async () => {
  const kill = `process.kill(process.pid, 'SIGKILL')`
  const output = await outputOf('json', `log.info('one'); announcer.info('two'); log.fatal('three'); ${kill}`)
  expect([...output.matchAll(/"msg":"(\w+)"/g)].map(([, text]) => text)).toEqual(['one', 'two', 'three'])
})

test('log - a full buffer is written at once', async () => {
  const code = `for (let i = 0; i < 10_000; i++) log.info('line ' + i)\nprocess.kill(process.pid, 'SIGKILL')`
  const output = await outputOf('json', code)
  expect(output.length).toBeGreaterThan(500_000)
  expect(output).toMatch(/^(?:\{.*\}\n)+$/)
})
