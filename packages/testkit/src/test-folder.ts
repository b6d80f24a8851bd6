import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

/** Makes a temporary folder that is removed when the running test ends. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Makes a temporary folder for all tests of a file or a `describe`, where it must be called. It is removed after the last one. */
export function groupFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Makes a file with this text that is removed when the running test ends. */
export function testFile(text: string): string {
  const path = join(testFolder(), 'file')
  writeFileSync(path, text)
  return path
}

/** Replaces a file as editors and orchestrators do: at once, by another file. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}
