/** The oldest Node that the package supports, as in its `engines`. */
const NEEDED = [22, 19] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

// Runs before the storage library is loaded: under an older Node it ends the process without a text.
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  throw new Error(
    `@signalbox/engine-embedded needs Node ${NEEDED.join('.')} or newer; this is ${process.versions.node}. Install a newer Node.`,
  )
}
