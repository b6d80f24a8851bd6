import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { watchFiles } from '../src/index.ts'

function watch(...files: readonly string[]) {
  const told: string[] = []
  const watched = watchFiles(files, {
    parse(texts) {
      if (texts.includes('bad')) throw new Error('it is bad')
      return texts.join('+')
    },
    changed: (value) => void told.push(value),
    refused: ({ message }) => void told.push(message),
    lookMs: 10,
  })
  onTestFinished(() => watched[Symbol.dispose]())
  return { watched, told }
}

test('files - a change is applied, and a refused file changes nothing', async () => {
  const [a, b] = [testFile('1'), testFile('2')]
  const { watched, told } = watch(a, b)
  expect(watched.value).toBe('1+2')
  replaceFile(a, 'bad')
  await expect.poll(() => told).toEqual(['it is bad'])
  expect(watched.value).toBe('1+2')
  replaceFile(b, '3')
  replaceFile(a, '4')
  await expect.poll(() => watched.value).toBe('4+3')
  rmSync(b)
  await expect.poll(() => told.at(-1)).toBe(`cannot read ${JSON.stringify(b)} (ENOENT)`)
  expect(watched.value).toBe('4+3')
  replaceFile(b, '5')
  await expect.poll(() => watched.value).toBe('4+5')
})

test('files - a problem is reported once, and again when it returns', async () => {
  const path = testFile('1')
  const { told } = watch(path)
  replaceFile(path, 'bad')
  await expect.poll(() => told.length).toBe(1)
  replaceFile(path, '2')
  await expect.poll(() => told).toEqual(['it is bad', '2'])
  replaceFile(path, 'bad')
  await expect.poll(() => told).toEqual(['it is bad', '2', 'it is bad'])
})

test('files - at the start a file that is missing or refused is an error', () => {
  expect(() => watch('/nowhere/at/all')).toThrow('cannot read "/nowhere/at/all" (ENOENT)')
  expect(() => watch(testFile('bad'))).toThrow('it is bad')
})

test.skipIf(process.platform === 'win32')(
  'files - a FIFO is refused, at the start and later, and blocks nothing',
  async () => {
    const path = testFile('1')
    const fifo = `${path}.fifo`
    execFileSync('mkfifo', [fifo])
    expect(() => watch(fifo)).toThrow(`cannot read ${JSON.stringify(fifo)} (it is not a regular file)`)
    const { watched, told } = watch(path)
    renameSync(fifo, path)
    await expect.poll(() => told).toEqual([`cannot read ${JSON.stringify(path)} (it is not a regular file)`])
    expect(watched.value).toBe('1')
  },
)

test('files - a file over 4 MiB is refused, at the start and later', async () => {
  const [path, large] = [testFile('1'), testFile('')]
  truncateSync(large, 600_000_000)
  const refusal = '(it has 600000000 bytes; at most 4194304 are allowed)'
  expect(() => watch(large)).toThrow(`cannot read ${JSON.stringify(large)} ${refusal}`)
  const { watched, told } = watch(path)
  truncateSync(path, 600_000_000)
  await expect.poll(() => told).toEqual([`cannot read ${JSON.stringify(path)} ${refusal}`])
  expect(watched.value).toBe('1')
})

/** Bytes that this process has read, from whatever. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
}

async function readInTenLooks(): Promise<number> {
  const before = bytesRead()
  await delay(100)
  return bytesRead() - before
}

test.runIf(existsSync('/proc/self/io'))('files - a file that stays the same is not read again', async () => {
  const { watched } = watch(testFile('x'.repeat(4_000_000)))
  // The first few looks read it, in case its clock is coarse; a busy machine takes its time for them.
  await expect.poll(readInTenLooks, { timeout: 20_000 }).toBeLessThan(4_000_000)
  expect(watched.value).toHaveLength(4_000_000)
})
