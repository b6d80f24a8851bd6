import type { Stored } from '@signalbox/client'

import type { CommandCall } from './command.ts'

/** Prints the answer to a send. */
export async function printStored({ line, io }: CommandCall, channel: string, stored: Stored): Promise<void> {
  const { id, sequence, duplicate } = stored
  await io.stdout.write(
    line.has('json')
      ? `${JSON.stringify({ channel, id, sequence, duplicate })}\n`
      : `${channel} ${sequence}: ${duplicate ? 'a message with this id was stored before: ' : ''}id ${id}\n`,
  )
}
