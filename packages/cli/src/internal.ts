// For the server, which checks the same files at its start.
export { certificateOf, checkKeyPair } from './tls.ts'
