import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { HttpAnswer } from '../harness/keep-alive-connection.ts'
import { WORKSPACE } from '../harness/signalbox-server.ts'

export interface RotationOptions {
  readonly seconds: number
  readonly clients: number
  /** From one rotation to the next, in milliseconds. */
  readonly intervalMs: number
}

export interface RotationReport {
  readonly seconds: number
  readonly requests: number
  /** What went wrong, each time it did. */
  readonly failures: readonly string[]
  readonly rotations: number
  /** How many of them the server was seen to take up. */
  readonly takenUp: number
  readonly exitCode: number | null
}

export function isResult({ status, body }: HttpAnswer): boolean {
  return status === 200 && body.includes('"result":')
}

/** What clients do while something rotates, and what came of it. */
export class RotationLoad {
  readonly failures: string[] = []
  requests = 0
  ended = false

  /** Calls again and again until the load has ended; anything but a result is a failure. */
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

/** Why a rotation failed; empty when it did not. */
export function rotationProblems({ requests, failures, rotations, takenUp, exitCode }: RotationReport): string[] {
  const problems: string[] = []
  if (requests === 0) problems.push('nothing was asked')
  if (rotations === 0) problems.push('nothing rotated')
  if (takenUp < rotations) problems.push(`the server took up ${takenUp} of ${rotations} rotations`)
  if (failures.length > 0) problems.push(`${failures.length} requests failed: ${failures.slice(0, 3).join(' · ')}`)
  if (exitCode !== 0) problems.push(`the server ended with exit code ${exitCode}`)
  return problems
}

export function rotationText({ seconds, requests, failures, rotations, takenUp }: RotationReport): string {
  const perSecond = Math.round(requests / seconds)
  return `${seconds.toFixed(1)} s, ${requests} requests (${perSecond}/s), ${failures.length} failed; ${rotations} rotations, ${takenUp} taken up`
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
