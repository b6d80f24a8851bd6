import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

const SYNC_CALLS = 'fsync,fdatasync'

/** Returns `true` if strace is installed and may trace. */
export function canCountSyncs(): boolean {
  try {
    execFileSync('strace', ['-o', '/dev/null', '-e', `trace=${SYNC_CALLS}`, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * A wrapper that counts the fsync and fdatasync calls of a process, over all its threads. The process keeps its own id
 * (strace runs next to it), so that kill -9 hits it and not strace.
 */
export function countingSyncs(file: string): readonly string[] {
  return ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-c', '-e', `trace=${SYNC_CALLS}`, '-o', file]
}

/** Returns the number of calls, after the process has ended. Without calls strace writes nothing: 0, after 10 s. */
export async function syncsCounted(file: string): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const text = await readFile(file, 'utf8').catch(() => '')
    // Strace writes the summary after the end of the last thread, with a short delay.
    if (/^\s*100\.00.* total$/m.test(text)) {
      return [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*\bf(?:data)?sync$/gm)].reduce(
        (sum, [, calls]) => sum + Number(calls),
        0,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return 0
}
