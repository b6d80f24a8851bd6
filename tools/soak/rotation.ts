import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { HttpAnswer } from '../harness/keep-alive-connection.ts'
import { WORKSPACE } from '../harness/signalbox-server.ts'

export interface RotationOptions {
  readonly seconds: number
  readonly clients: number
  /** The time between two rotations, in milliseconds. */
  readonly intervalMs: number
}

export interface RotationReport {
  readonly seconds: number
  readonly requests: number
  /** The failures, one entry each. */
  readonly failures: readonly string[]
  readonly rotations: number
  /** The number of rotations that the server was seen to apply. */
  readonly takenUp: number
  readonly exitCode: number | null
}

export function isResult({ status, body }: HttpAnswer): boolean {
  return status === 200 && body.includes('"result":')
}

/** The clients' load during rotations, and its results. */
export class RotationLoad {
  readonly failures: string[] = []
  requests = 0
  ended = false

  /** Calls repeatedly until the load has ended; anything except a result is a failure. */
  async client(call: () => Promise<HttpAnswer>): Promise<void> {
    while (!this.ended) {
      try {
        const { status, body } = await call()
        this.requests++
        if (status !== 200 || !body.includes('"result":'))
          this.failures.push(`${status} ${body.toString('utf8', 0, 200)}`)
      } catch (error) {
        this.requests++
        this.failures.push(String(error))
      }
    }
  }
}

/** Returns the reasons why a rotation failed; empty if it succeeded. */
export function rotationProblems({ requests, failures, rotations, takenUp, exitCode }: RotationReport): string[] {
  const problems: string[] = []
  if (requests === 0) problems.push('no request was sent')
  if (rotations === 0) problems.push('nothing rotated')
  if (takenUp < rotations) problems.push(`the server applied ${takenUp} of ${rotations} rotations`)
  if (failures.length > 0) problems.push(`${failures.length} requests failed: ${failures.slice(0, 3).join(' · ')}`)
  if (exitCode !== 0) problems.push(`the server ended with exit code ${exitCode}`)
  return problems
}

export function rotationText({ seconds, requests, failures, rotations, takenUp }: RotationReport): string {
  const perSecond = Math.round(requests / seconds)
  return `${seconds.toFixed(1)} s, ${requests} requests (${perSecond}/s), ${failures.length} failed; ${rotations} rotations, ${takenUp} applied`
}

/** Replaces a file as editors and orchestrators do. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

/** A file of the test certificates. */
export function testCertificate(name: string): string {
  return readFileSync(join(WORKSPACE, 'apps/server/test/certificates', name), 'utf8')
}
