import type { NewEvent } from '../../core/protocol.ts'
import type { Profile } from './contract.ts'

/** The event of a change. */
export function changed({ version, content }: Profile, undone: boolean): NewEvent {
	return { event_type: 'profile.changed', payload: { version, bytes: Buffer.byteLength(content), undone } }
}
