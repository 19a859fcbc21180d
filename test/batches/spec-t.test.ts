import { together } from './together.ts'

await together('spec-t')
