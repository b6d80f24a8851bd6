import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Finding } from './target.ts'
import type { FindingKind, Target } from './target.ts'

/** A stored input that broke a promise. */
export interface StoredInput {
  readonly target: string
  /** A description of the fault; the name of the regression. */
  readonly name: string
  readonly input: unknown
  readonly kind?: FindingKind
  readonly seed?: number
}

/**
 * Returns a key that is equal for two findings of probably one cause: the error and its origin, otherwise the promise
 * without its values.
 */
export function signatureOf(target: string, { kind, message, cause }: Finding): string {
  const place = cause instanceof Error ? `${cause.name} ${ownFrame(cause)}` : ''
  const plain = message.replace(/: got .*/s, '').replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""')
  return `${target} ${kind} ${place === '' ? plain.replaceAll(/\d+/g, '0').slice(0, 160) : place}`
}

/** Returns the innermost Signalbox function in a stack. */
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

/** Runs a stored input against its target. @returns the broken promise, or `undefined` */
export async function replay(
  targets: readonly Target[],
  { target: name, input }: StoredInput,
): Promise<Finding | undefined> {
  const target = targets.find((candidate) => candidate.name === name)
  if (target === undefined) throw new Error(`no such target: ${name}`)
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
