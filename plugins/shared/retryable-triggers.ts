/**
 * Triggers of runs that can be started again: nobody waits for their answers any more. The others answer a message or a request,
 * which can be sent again.
 */
export const retryableTriggers: readonly string[] = ['api', 'webhook', 'heartbeat']
