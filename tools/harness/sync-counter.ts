import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

const SYNC_CALLS = 'fsync,fdatasync'

/** Whether strace is here and may trace. */
export function canCountSyncs(): boolean {
  try {
    execFileSync('strace', ['-o', '/dev/null', '-e', `trace=${SYNC_CALLS}`, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * A wrapper for a process whose fsync and fdatasync calls are to be counted, over all its threads. The process keeps its
 * own id (strace stays beside it), so that kill -9 hits it and not strace.
 */
export function countingSyncs(file: string): readonly string[] {
  return ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-c', '-e', `trace=${SYNC_CALLS}`, '-o', file]
}

/** The number of calls, once the process has ended. */
export async function syncsCounted(file: string): Promise<number> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const text = await readFile(file, 'utf8').catch(() => '')
    // The summary is written when strace has seen the end of the last thread, a moment after it.
    if (/^\s*100\.00.* total$/m.test(text)) {
      return [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*\bf(?:data)?sync$/gm)].reduce(
        (sum, [, calls]) => sum + Number(calls),
        0,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('strace has not written its count')
}
