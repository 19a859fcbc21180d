/** The reason why there is no release. The message states what to do. */
export class Refused extends Error {}
