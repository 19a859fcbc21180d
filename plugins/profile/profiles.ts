/** The service: one profile per agent, and its earlier versions. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Key, Op } from '../../core/store/ports.ts'
import { now } from '../../core/util/ids.ts'
import type { Profile, Profiles } from './contract.ts'

export const PROFILE_BYTES = 2_048
const VERSIONS_KEPT = 20

const keys = {
	profile: (uid: string): Key => [agentScope(uid), 'profile'],
	/** In a separate record, since every run reads the profile. */
	versions: (uid: string): Key => [agentScope(uid), 'profile-versions'],
}

export interface OwnProfiles extends Profiles {
	/** As `write`. `isChanged` is false if the profile had this content already. */
	replace(agent: AgentRef, content: string, expected_version?: number): Promise<Replacement>
}

interface Replacement {
	profile: Profile
	isChanged: boolean
}

/** The event of a change. */
export function changed({ version, content }: Profile, undone: boolean): NewEvent {
	return { event_type: 'profile.changed', payload: { version, bytes: Buffer.byteLength(content), undone } }
}

/** Newest first. */
type VersionsRecord = Record<'earlier', Profile[]>

export function profilesOf({ store, redactor }: Pick<Context, 'store' | 'redactor'>): OwnProfiles {
	const find = (uid: string): Promise<Entry<Profile> | undefined> => store.get(keys.profile(uid))

	const findBoth = async (uid: string) => {
		const [profile, versions] = await Promise.all([find(uid), store.get<VersionsRecord>(keys.versions(uid))])
		return { profile, versions, earlier: versions?.value.earlier ?? [] }
	}

	type Both = Awaited<ReturnType<typeof findBoth>>
	const opsFor = (uid: string, { profile, versions }: Both, next: Profile, earlier: Profile[]): Op[] => [
		{ key: keys.profile(uid), value: next, expect: profile?.rev ?? null },
		{
			key: keys.versions(uid),
			value: { earlier: earlier.slice(0, VERSIONS_KEPT) } satisfies VersionsRecord,
			expect: versions?.rev ?? null,
		},
	]

	const profiles: OwnProfiles = {
		async read({ uid }) {
			return (await store.getShared<Profile>(keys.profile(uid)))?.value ?? NONE
		},

		write: async (...given) => (await profiles.replace(...given)).profile,

		async replace(agent, wanted, expected_version) {
			const { uid } = agent
			const content = redactor.of([{ uid }]).text(wanted.trim(), 'record')
			return change<Replacement>(store, agentScope(uid), async () => {
				const both = await findBoth(uid)
				const current: Profile = both.profile?.value ?? NONE
				// Also for a call that is repeated after a crash.
				if (content === current.content) return { result: { profile: current, isChanged: false } }
				if (expected_version !== undefined && expected_version !== current.version)
					throw outdated(expected_version, current)
				const bytes = Buffer.byteLength(content)
				if (bytes > PROFILE_BYTES) throw tooLong(bytes)
				const next = { content, version: current.version + 1, updated_at: now() }
				return {
					ops: opsFor(uid, both, next, [current, ...both.earlier]),
					result: { profile: next, isChanged: true },
				}
			})
		},

		async versions({ uid }) {
			return (await findBoth(uid)).earlier
		},

		async undo(agent: AgentRef) {
			const { uid, name } = agent
			return change(store, agentScope(uid), async () => {
				const both = await findBoth(uid)
				const [before, ...earlier] = both.earlier
				if (!both.profile || !before)
					throw new Fault('conflict', `the profile of agent "${name}" has no earlier version`)
				const next = { content: before.content, version: both.profile.value.version + 1, updated_at: now() }
				return { ops: opsFor(uid, both, next, earlier), result: next }
			})
		},
	}
	return profiles
}

const NONE: Profile = { content: '', version: 0, updated_at: null }

function outdated(expected: number, { version }: Profile): Fault {
	return new Fault(
		'conflict',
		`the profile was changed meanwhile: it is at version ${version}, not ${expected}; read it again, and write a text that keeps the changes`,
	)
}

function tooLong(bytes: number): Fault {
	return new Fault(
		'invalid_request',
		`a profile has at most ${PROFILE_BYTES} bytes of UTF-8, and this text has ${bytes}; shorten it, and store details with memory.store`,
	)
}
