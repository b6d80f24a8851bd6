import process from 'node:process'

/** The usage line of each command. */
export const USAGE = {
  token: 'signalbox token --client-id NAME [--roles ReadOnly,ReadWrite,Admin] [--ttl 1h] [--folder ./signalbox-keys]',
  policy: 'signalbox policy check FILE --client NAME --action ACTION --pattern PATTERN --channel CHANNEL',
  backup: 'signalbox backup FILE [--store-path FOLDER] [--config FILE]',
  recover: 'signalbox recover FOLDER NEW_FOLDER',
  init: 'signalbox init docker|systemd|kubernetes|prometheus|grafana|logs [FOLDER]',
  mcp: 'signalbox mcp [--url http://127.0.0.1:9090/mcp]',
} as const

/** Prints the usage of a command if its line contains `--help` or `-h`. Returns true if it did. */
export function helpWanted(command: keyof typeof USAGE, args: readonly string[]): boolean {
  if (!args.includes('--help') && !args.includes('-h')) return false
  process.stdout.write(`Usage: ${USAGE[command]}\n`)
  return true
}
