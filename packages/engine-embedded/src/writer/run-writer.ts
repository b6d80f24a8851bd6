import Database from 'better-sqlite3'
import { isMainThread, parentPort, receiveMessageOnPort } from 'node:worker_threads'

import { damageReason, FREE_SPACE } from '../store/damage.ts'
import { isFull, openWriteConnection, sqliteCode } from '../store/sqlite.ts'
import { ChannelTable } from './channel-table.ts'
import { GroupCommit } from './group-commit.ts'
import { OperationRunner } from './operation-runner.ts'
import type { Operation } from './operations.ts'
import { DamagedError, SkippedChannels } from './refusals.ts'
import { Reserve, Space } from './space.ts'
import type { WriterReply, WriterRequest, WriterSettings } from './thread-messages.ts'
import { unpackOperations } from './thread-messages.ts'
import { Checkpointer, WalFile } from './wal.ts'

/**
 * The maximum number of operations in one commit. Further ones wait for the next commit, so that the first operation of
 * a group does not wait long.
 */
const MAX_GROUP = 4_096

/**
 * Writes one store: receives operations from the main thread, commits them in groups, and posts their results. When the
 * store is closed, it calls `closed`; after a failure the thread ends.
 */
export function runWriter(settings: WriterSettings, closed: () => void): void {
  const port = parentPort
  if (isMainThread || !port) throw new Error('the writer runs in a worker thread')
  const reply = (message: WriterReply): void => port.postMessage(message)

  let database: Database.Database | undefined
  let wal: WalFile | undefined
  const closeFiles = (): void => {
    database?.close()
    wal?.close()
  }
  /** Closes the connection. The main thread's reader is still open, so closing does not copy the WAL back. */
  const fail = (error: unknown): void => {
    const message = error instanceof Error ? error.message : String(error)
    try {
      closeFiles()
    } catch {}
    reply({ kind: 'failed', code: sqliteCode(error) || 'ERROR', message })
    port.close()
  }

  try {
    database = openWriteConnection(settings.file)
    const checkpointer = new Checkpointer(
      database,
      settings.wal,
      (error) => {
        if (isFull(error)) space.handleFull()
        else fail(error)
      },
      (error) => reply({ kind: 'damaged', place: { part: FREE_SPACE }, reason: damageReason(error) }),
    )
    if (settings.recover) checkpointer.truncate()
    const channels = new ChannelTable(database)
    const space = new Space(new Reserve(settings.reserve), checkpointer)
    const skipped = new SkippedChannels()
    const runner = new OperationRunner(database, channels, settings, skipped)
    try {
      runner.load()
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error
      skipped.note(error)
      reply({ kind: 'damaged', place: error.place, reason: damageReason(error.cause) })
    }
    wal = new WalFile(settings.wal)
    const groups = new GroupCommit(database, channels, runner, wal, skipped, space, (when) =>
      injectFault(settings.faults, when),
    )

    const close = (): void => {
      checkpointer.close()
      try {
        checkpointer.truncate()
      } catch {
        // The rest stays in the WAL, and the next start copies it back.
      }
      closeFiles()
      port.off('message', receive)
      closed()
      reply({ kind: 'closed' })
    }

    const receive = (first: WriterRequest): void => {
      try {
        const operations: Operation[] = []
        let closing = false
        for (let request: WriterRequest | undefined = first; request; request = next()) {
          if ('close' in request) closing = true
          else operations.push(...unpackOperations(request))
          if (operations.length >= MAX_GROUP) break
        }
        if (operations.length > 0) {
          if (operations.some(({ kind }) => kind === 'probe')) space.probe()
          const group = groups.run(operations)
          reply(group)
          // Older programs read the version in the data file, and must refuse the store before it has groups.
          if (group.wrote) space.afterCommit(runner.takeNewVersion())
        }
        if (closing) close()
      } catch (error) {
        fail(error)
      }
    }
    port.on('message', receive)
    reply({ kind: 'ready', full: space.full })

    function next(): WriterRequest | undefined {
      const received: { message: WriterRequest } | undefined = port ? receiveMessageOnPort(port) : undefined
      return received?.message
    }
  } catch (error) {
    fail(error)
  }
}

/** Makes a commit fail like the disk would. Only tests pass the shared number that requests it. */
function injectFault(faults: Int32Array | undefined, when: 'before' | 'after'): void {
  const fault = faults ? Atomics.load(faults, 0) : 0
  if (when === 'before' && fault === 1) throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
  const failsSync = (when === 'before' && fault === 2) || (when === 'after' && fault === 3)
  if (failsSync) throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC')
}
