import { together } from './together.ts'

await together('chat-b')
