import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Finding } from './target.ts'
import type { FindingKind, Target } from './target.ts'

/** An input that broke a promise, as a file holds it. */
export interface StoredInput {
  readonly target: string
  /** What is wrong, or what was: the name of the regression. */
  readonly name: string
  readonly input: unknown
  readonly kind?: FindingKind
  readonly seed?: number
}

/**
 * The same for two findings of one cause, most likely: what was thrown and where; otherwise the promise, without the
 * values.
 */
export function signatureOf(target: string, { kind, message, cause }: Finding): string {
  const place = cause instanceof Error ? `${cause.name} ${ownFrame(cause)}` : ''
  const plain = message.replace(/: got .*/s, '').replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""')
  return `${target} ${kind} ${place === '' ? plain.replaceAll(/\d+/g, '0').slice(0, 160) : place}`
}

/** The innermost function of ours in a stack. */
function ownFrame({ stack = '' }: Error): string {
  return /at (\S+) \([^)]*\/(?:packages|apps)\/[^)]*\)/.exec(stack)?.[1] ?? ''
}

/** Writes a finding and returns the file, named after its cause. */
export function storeFinding(folder: string, stored: StoredInput, signature: string): string {
  mkdirSync(folder, { recursive: true })
  const hash = createHash('sha256').update(signature).digest('hex').slice(0, 8)
  const file = join(folder, `${stored.target}-${hash}.json`)
  writeFileSync(file, `${JSON.stringify(stored, undefined, 2)}\n`)
  return file
}

export function readInput(file: string): StoredInput {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof value === 'object' && value !== null && 'target' in value && 'input' in value) return value as StoredInput
  throw new Error(`${file} holds no input; it must be {target, name, input}`)
}

/** Gives a stored input to its target. @returns what it breaks, or undefined */
export async function replay(
  targets: readonly Target[],
  { target: name, input }: StoredInput,
): Promise<Finding | undefined> {
  const target = targets.find((candidate) => candidate.name === name)
  if (target === undefined) throw new Error(`there is no target ${name}`)
  await using open = await target.open()
  try {
    await open.check(input)
    await open.settle?.()
    return undefined
  } catch (error) {
    if (error instanceof Finding) return error
    throw error
  }
}
