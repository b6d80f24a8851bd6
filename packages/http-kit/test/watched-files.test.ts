import { rmSync } from 'node:fs'

import { expect, onTestFinished, test } from 'vitest'

import { watchFiles } from '../src/index.ts'
import { file, replace } from './support/tokens.ts'

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

test('files - a change is seen, and what is refused changes nothing', async () => {
  const [a, b] = [file('1'), file('2')]
  const { watched, told } = watch(a, b)
  expect(watched.value).toBe('1+2')
  replace(a, 'bad')
  await expect.poll(() => told).toEqual(['it is bad'])
  expect(watched.value).toBe('1+2')
  replace(b, '3')
  replace(a, '4')
  await expect.poll(() => watched.value).toBe('4+3')
  rmSync(b)
  await expect.poll(() => told.at(-1)).toBe(`cannot read ${JSON.stringify(b)} (ENOENT)`)
  expect(watched.value).toBe('4+3')
  replace(b, '5')
  await expect.poll(() => watched.value).toBe('4+5')
})

test('files - what is wrong is said once, and again when it comes back', async () => {
  const path = file('1')
  const { told } = watch(path)
  replace(path, 'bad')
  await expect.poll(() => told.length).toBe(1)
  replace(path, '2')
  await expect.poll(() => told).toEqual(['it is bad', '2'])
  replace(path, 'bad')
  await expect.poll(() => told).toEqual(['it is bad', '2', 'it is bad'])
})

test('files - at the start a file that is missing or refused is an error', () => {
  expect(() => watch('/nowhere/at/all')).toThrow('cannot read "/nowhere/at/all" (ENOENT)')
  expect(() => watch(file('bad'))).toThrow('it is bad')
})
