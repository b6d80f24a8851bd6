import { groupOrder } from './groups.ts'
console.log(JSON.stringify(await groupOrder({ messages: 1_000_000, groups: 100_000, seconds: 90, seed: 1, log: console.log })))
process.exit()
