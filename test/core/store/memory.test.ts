import t from 'tap'
import { openMemory } from '../../../core/store/memory.ts'
import { storeSuite } from '../../contracts/store.ts'

storeSuite(t, async () => openMemory())
