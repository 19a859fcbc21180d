import { together } from './together.ts'

await together('discord')
