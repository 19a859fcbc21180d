import t from 'tap'
import { attack } from './hostile/attack.ts'
import { loops } from './hostile/loops.ts'

void t.test('programs that do not want to end', (t) => attack(t, loops, { every: 2 }))
