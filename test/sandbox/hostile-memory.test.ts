import t from 'tap'
import { attack } from './hostile/attack.ts'
import { memory } from './hostile/memory.ts'

void t.test('programs that want all memory there is', (t) => attack(t, memory, { every: 2 }))
