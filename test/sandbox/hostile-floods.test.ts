import t from 'tap'
import { attack } from './hostile/attack.ts'
import { floods } from './hostile/floods.ts'

void t.test('programs that shout', (t) => attack(t, floods, { cpu_s: 0.5 }))
