/** The checks of `svc doctor`: the bot tokens of channels, and the connections of running ones. */
import { error, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding, CheckContext } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import { platformOf } from './cli/find.ts'
import type { Channel, ChannelDetails } from './contract.ts'
import { directoryOf } from './directory.ts'
import type { ChannelRecord } from './directory.ts'

type CheckedChannel = Pick<ChannelDetails, 'id' | 'type' | 'bot_token_ref' | 'config'> &
	Partial<Pick<ChannelDetails, 'connection' | 'last_error'>> &
	Partial<Pick<ChannelRecord, 'trusted'>>

export default {
	checks: [
		{
			id: 'channel.token',
			about: 'the bot tokens of channels',
			async run(context) {
				const channels = await channelsOf(context)
				if (channels.length === 0) return []
				const secrets = await context.secrets()
				const findings = await Promise.all(
					channels.map(async (channel): Promise<Finding[]> => {
						const secret = await secrets.find(channel.bot_token_ref)
						if (!secret)
							return [
								error(
									`the bot token of the channel ${channel.id} (${platformOf(channel.type)}) is not in the vault`,
									`store it: svc vault set ${channel.bot_token_ref}; or use another secret: svc channels update ${channel.id} --secret NAME`,
								),
							]
						return secret.value === null ? [] : problemsOf(channel, secret.value, context)
					}),
				)
				const problems = findings.flat()
				return problems.length > 0 ? problems : ok(`the bot token of each channel is in the vault (${channels.length})`)
			},
		},
		{
			id: 'channel.connection',
			about: 'the connections of channels',
			async run(context) {
				if (!(await context.gateway())) return []
				const channels = await channelsOf(context)
				const problems = channels.flatMap(({ id, type, connection, last_error }): Finding[] => {
					const channel = `the channel ${id} (${platformOf(type)})`
					const fix = `fix that; then check: svc channels show ${id}`
					if (connection === 'connected' && last_error) return [warning(`${channel} has an error: ${last_error}`, fix)]
					if (connection === 'connected' || connection === 'connecting') return []
					const about = `${channel} is not connected`
					if (connection === 'disabled')
						return [warning(`${about}: no running plugin provides its type`, 'switch its plugin on in gateway.yaml')]
					const found = connection === 'error' ? error : warning
					return [found(`${about}: ${last_error ?? 'no reason is known'}`, fix)]
				})
				return problems.length > 0 || channels.length === 0
					? problems
					: ok(`each channel is connected (${channels.length})`)
			},
		},
	],
} satisfies DoctorFile

/** Checks a token with the platform itself. */
async function problemsOf(
	{ id, type, config, trusted }: CheckedChannel,
	token: string,
	context: CheckContext,
): Promise<Finding[]> {
	// Only the gateway can check whether the token may still be sent to this server.
	if (!trusted && config.api_root !== undefined) return []
	const ask = (await context.doctorFiles()).find(({ bots }) => bots && Object.hasOwn(bots, type))?.bots?.[type]
	const about = `the bot token of the channel ${id} (${platformOf(type)})`
	try {
		const problem = await ask?.({ token, config }, context)
		return problem ? [{ level: 'error', message: `${about}: ${problem.message}`, fix: problem.fix }] : []
	} catch (thrown) {
		if (!isFault(thrown)) throw thrown
		return [
			warning(
				`${about} could not be checked: ${messageOf(thrown)}`,
				'check whether this machine can reach the platform',
			),
		]
	}
}

function channelsOf(context: CheckContext): Promise<CheckedChannel[]> {
	return context.once('channels', async () => {
		const gateway = await context.gateway()
		if (gateway) {
			const { channels } = await gateway.get<{ channels: Channel[] }>('/v1/channels')
			return Promise.all(channels.map(({ id }) => gateway.get<ChannelDetails>(`/v1/channels/${id}`)))
		}
		const store = await context.store()
		return store ? directoryOf(store).list() : []
	})
}
