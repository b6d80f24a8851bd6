import type Database from 'better-sqlite3'

import type { RecoveredChannels } from './recovered-channels.ts'
import { isDamage, isHopeless, sqliteCode } from './sqlite-code.ts'

interface PositionRow {
  readonly channel: unknown
  readonly name: unknown
  readonly position: unknown
  readonly usedAt: unknown
}

/**
 * Copies the readable positions of durable groups; returns a report if some could not be read. Such a group starts
 * again where its next subscriber asks. Call it after the messages were copied.
 */
export function copyPositions(
  source: Database.Database,
  target: Database.Database,
  channels: RecoveredChannels,
): string[] {
  const insert = target.prepare(
    'INSERT OR IGNORE INTO group_positions (channel, name, position, used_at) VALUES (?, ?, ?, ?)',
  )
  try {
    // Stores from before this table do not have it.
    const table = source.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'group_positions'")
    if (!table.get()) return []
    const rows = source.prepare<[], PositionRow>(
      'SELECT channel, name, position, used_at AS usedAt FROM group_positions',
    )
    for (const { channel, name, position, usedAt } of rows.iterate()) {
      if (!isWhole(channel) || !isWhole(position) || !isWhole(usedAt) || typeof name !== 'string') continue
      if (channels.hasEventsStore(channel)) insert.run(channel, name, position, usedAt)
    }
    return []
  } catch (error) {
    if (!isDamage(error) && !isHopeless(sqliteCode(error))) throw error
    return ['positions of durable groups: some could not be read']
  }
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
